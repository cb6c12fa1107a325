package io.deltaic.spark.catalog.definition

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName.INT96
import org.apache.parquet.schema.{GroupType, MessageType, Type}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, WriteInternals}
import org.apache.spark.sql.types._
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.protocol.{LogPath, Metadata => TableMetadata}
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.commit.CommitFiles
import io.deltaic.spark.schema.{PhysicalSchema, RowTracking}
import io.deltaic.spark.util.ParquetFiles

/**
 * The requirements of Iceberg compatibility that can be checked on a data file (Protocol § Iceberg Compatibility V1, V2;
 * V3).
 *
 * @param columns the columns whose IDs and types are checked, under their physical names
 * @param partitionColumns the partition columns that a file must contain, under their physical names
 * @param allowsDeletionVectors whether a file may have a deletion vector
 */
private[spark] final case class IcebergFiles(
    columns: StructType,
    partitionColumns: Seq[String],
    allowsDeletionVectors: Boolean = false
) {
  import IcebergFiles._

  /** The first file of a version that does not meet them, and a reason code that Python maps to a message. */
  def firstUnfit(spark: SparkSession, log: DeltaLog, version: Long): Option[(String, String)] =
    log.withReadableFiles(log.at(version)) { snapshot =>
      val paths = Vector.newBuilder[String]
      val inLog = snapshot.adds.flatMap { add =>
        paths += add.path
        if (add.deletionVector.isDefined && !allowsDeletionVectors)
          Some(add.path -> "deletionVector")
        else if (CommitFiles.rows(add).isEmpty) Some(add.path -> "numRecords")
        else None
      }
      inLog.nextOption().orElse(inFooters(spark, log.table.toString, paths.result(), this))
    }

  private def needsFooters: Boolean = columns.nonEmpty || partitionColumns.nonEmpty

  /** The reason why the file does not meet the requirements. */
  private[catalog] def problem(file: MessageType): Option[String] =
    if (!partitionColumns.forall(file.containsField)) Some("partitionColumn")
    else within(file, columns)

  private def within(group: GroupType, struct: StructType): Option[String] =
    struct.iterator.filter(column => group.containsField(column.name)).flatMap { column =>
      val field = group.getType(column.name)
      val nested =
        if (column.metadata.contains(PhysicalSchema.NestedIds))
          column.metadata.getMetadata(PhysicalSchema.NestedIds)
        else Metadata.empty
      if (!hasId(field, column.metadata, PhysicalSchema.ParquetFieldId)) Some("fieldId")
      else of(field, column.dataType, column.name, nested)
    }.nextOption()

  private def of(node: Type, dataType: DataType, path: String, ids: Metadata): Option[String] =
    (dataType, node) match {
      case (struct: StructType, group: GroupType) => within(group, struct)
      case (ArrayType(element, _), group: GroupType) =>
        parts(group, Seq("element" -> element), path, ids)
      case (MapType(key, value, _), group: GroupType) =>
        parts(group, Seq("key" -> key, "value" -> value), path, ids)
      case (_: ArrayType | _: MapType | _: StructType, _) => Some("layout")
      case (VariantType, group: GroupType) =>
        Option.when(!Seq("metadata", "value").forall(group.containsField))("layout")
      case (_, leaf) if leaf.isPrimitive =>
        Option.when(leaf.asPrimitiveType.getPrimitiveTypeName == INT96)("timestamp")
      case _ => Some("layout")
    }

  /** A list or a map is a group with one repeated group, which holds the elements or entries. */
  private def parts(
      outer: GroupType,
      types: Seq[(String, DataType)],
      path: String,
      ids: Metadata
  ): Option[String] = outer.getFields.asScala.toSeq match {
    case Seq(repeated: GroupType) if repeated.getFieldCount == types.size =>
      repeated.getFields.asScala.iterator.zip(types).flatMap { case (part, (name, dataType)) =>
        val here = s"$path.$name"
        if (!hasId(part, ids, here)) Some("fieldId") else of(part, dataType, here, ids)
      }.nextOption()
    case _ => Some("layout")
  }

  private def hasId(field: Type, ids: Metadata, key: String): Boolean =
    field.getId != null && ids.contains(key) && ids.getLong(key) == field.getId.intValue.toLong
}

private[spark] object IcebergFiles {

  /** Reading a footer is mostly waiting for the store, so that a task reads many. */
  private val FilesPerTask = 64

  /**
   * @param metadata the new metadata of the table
   * @param compatVersion from 2 on, every column and nested field must have its field ID
   */
  def of(metadata: TableMetadata, compatVersion: Int): IcebergFiles = {
    val schema = DataType.fromJson(metadata.schemaString).asInstanceOf[StructType]
    val physical = PhysicalSchema.of(schema, columnMapping = true)
    val inFiles = schema.fieldNames.zip(physical.fieldNames).toMap
    val tracked =
      if (compatVersion < 3) Nil
      else RowTracking.of(metadata).materializedWithFieldIds
    IcebergFiles(
      if (compatVersion > 1) StructType(physical ++ tracked) else StructType(Nil),
      metadata.partitionColumns.map(inFiles),
      allowsDeletionVectors = compatVersion > 2
    )
  }

  /** Outside of the class, so that tasks do not capture anything else. */
  private def inFooters(
      spark: SparkSession,
      table: String,
      paths: Seq[String],
      required: IcebergFiles
  ): Option[(String, String)] =
    if (paths.isEmpty || !required.needsFooters) None
    else {
      val conf = spark.sparkContext.broadcast(
        new SerializableConfiguration(WriteInternals.hadoopConf(spark, Map.empty))
      )
      val batches = paths.grouped(FilesPerTask).toSeq
      JobInternals.inExecutors(
        spark,
        JobInternals.name("SET TBLPROPERTIES", "footers", table),
        batches
      )(
        ofBatch(table, _, required, conf)
      ).headOption
    }

  private def ofBatch(
      table: String,
      paths: Seq[String],
      required: IcebergFiles,
      conf: Broadcast[SerializableConfiguration]
  ): Iterator[(String, String)] =
    paths.iterator.flatMap { path =>
      required.problem(footer(
        LogPath.toAbsolute(new Path(table), path),
        conf.value.value
      )).map(path -> _)
    }.take(1)

  private def footer(file: Path, conf: Configuration): MessageType = {
    val reader = ParquetFiles.open(file, conf)
    try reader.getFooter.getFileMetaData.getSchema
    finally reader.close()
  }
}
