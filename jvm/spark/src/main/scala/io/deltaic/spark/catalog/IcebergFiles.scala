package io.deltaic.spark.catalog

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName.INT96
import org.apache.parquet.schema.{GroupType, MessageType, Type}
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobShims, WriteShims}
import org.apache.spark.sql.types._
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.protocol.{LogPath, Metadata => TableMetadata}
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.bridge.FileChanges
import io.deltaic.spark.scan.PhysicalSchema

/**
 * What Iceberg compatibility asks of data files (Protocol § Iceberg Compatibility V1, V2), as far as a file shows it.
 *
 * @param columns those whose ids and types count, under the names they have in files
 * @param partitionColumns that a file has to hold, under the same
 */
private[spark] final case class IcebergFiles(columns: StructType, partitionColumns: Seq[String]) {
  import IcebergFiles._

  /** The first file of a version that does not fit, and why, in the words that Python knows. */
  def firstUnfit(spark: SparkSession, log: DeltaLog, version: Long): Option[(String, String)] =
    log.withReadableFiles(log.at(version)) { snapshot =>
      val paths = Vector.newBuilder[String]
      val inLog = snapshot.adds.flatMap { add =>
        paths += add.path
        if (add.deletionVector.isDefined) Some(add.path -> "deletionVector")
        else if (FileChanges.rows(add).isEmpty) Some(add.path -> "numRecords")
        else None
      }
      inLog.nextOption().orElse(inFooters(spark, log.table.toString, paths.result(), this))
    }

  private def asksOfFooters: Boolean = columns.nonEmpty || partitionColumns.nonEmpty

  /** Why the file does not fit. */
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
      case (_, leaf) if leaf.isPrimitive =>
        Option.when(leaf.asPrimitiveType.getPrimitiveTypeName == INT96)("timestamp")
      case _ => Some("layout")
    }

  /** A list or a map is a group with one repeated group, which has the parts. */
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

  /** A footer takes little time and much waiting. */
  private val FilesPerTask = 64

  /**
   * @param metadata the definition that is to be
   * @param numbers whether every column, and all within it, has to be there under its id
   */
  def of(metadata: TableMetadata, numbers: Boolean): IcebergFiles = {
    val schema = DataType.fromJson(metadata.schemaString).asInstanceOf[StructType]
    val physical = PhysicalSchema.of(schema, columnMapping = true)
    val inFiles = schema.fieldNames.zip(physical.fieldNames).toMap
    IcebergFiles(
      if (numbers) physical else StructType(Nil),
      metadata.partitionColumns.map(inFiles)
    )
  }

  /** Outside of the class, so that the tasks take nothing else along. */
  private def inFooters(
      spark: SparkSession,
      table: String,
      paths: Seq[String],
      asked: IcebergFiles
  ): Option[(String, String)] =
    if (paths.isEmpty || !asked.asksOfFooters) None
    else {
      val conf = spark.sparkContext.broadcast(
        new SerializableConfiguration(WriteShims.hadoopConf(spark, Map.empty))
      )
      val batches = paths.grouped(FilesPerTask).toSeq
      JobShims.inExecutors(spark, JobShims.name("SET TBLPROPERTIES", "footers", table), batches)(
        ofBatch(table, _, asked, conf)
      ).headOption
    }

  private def ofBatch(
      table: String,
      paths: Seq[String],
      asked: IcebergFiles,
      conf: Broadcast[SerializableConfiguration]
  ): Iterator[(String, String)] =
    paths.iterator.flatMap { path =>
      asked.problem(footer(
        LogPath.toAbsolute(new Path(table), path),
        conf.value.value
      )).map(path -> _)
    }.take(1)

  private def footer(file: Path, conf: Configuration): MessageType = {
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(file, conf))
    try reader.getFooter.getFileMetaData.getSchema
    finally reader.close()
  }
}
