package io.deltaic.spark.write.files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.ParquetOutputFormat
import org.apache.parquet.hadoop.metadata.CompressionCodecName
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.deltaic.WriteInternals
import org.apache.spark.sql.execution.datasources.parquet.{ParquetOptions, ParquetWriteSupport}
import org.apache.spark.sql.internal.{LegacyBehaviorPolicy, SQLConf}
import org.apache.spark.sql.types._
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.dv.{DeletionVectorFileWriter, DeletionVectorStore}
import io.deltaic.protocol.{DeltaicException, DeltaicThrowable, TableProperties}
import io.deltaic.spark.schema.{PartitionPaths, PhysicalSchema, RowCheck}
import io.deltaic.spark.write.parquet.{DictionaryFallbacks, FirstRows}

/**
 * Everything a task needs to write data files of one table. The driver builds it, after it has resolved and
 * validated every setting, and sends it to the executors.
 *
 * @param tablePath         the table's root, not URI-encoded
 * @param checks            conditions on every row, over the columns of `schema` by position
 * @param maxRecordsPerFile 0 for no limit
 * @param tags              the tags of each file in the log
 * @param shredsVariants    whether fields of variants become columns of the files
 */
private[deltaic] final class DataWriteSpec private (
    val tablePath: String,
    private val layout: RowLayout,
    private val paths: NewFilePaths,
    val checks: Seq[RowCheck],
    val statistics: StatisticsColumns,
    val maxRecordsPerFile: Long,
    val tags: Map[String, String],
    val shredsVariants: Boolean,
    shared: Broadcast[ExecutorState]
) extends Serializable {

  /** See [[RowLayout]]. */
  def schema: StructType = layout.schema
  def numRowTrackingColumns: Int = layout.numRowTrackingColumns
  def partitionOrdinals: Array[Int] = layout.partitionOrdinals
  def fileOrdinals: Array[Int] = layout.fileOrdinals
  def storesWholeRows: Boolean = layout.storesWholeRows
  def partitionNames: Array[String] = layout.partitionNames

  def numColumnsWithStatistics: Int = statistics.roots.size

  /** Complete for the Parquet writer. The tasks of an executor share it, and must not change it. */
  def hadoopConf: Configuration = shared.value.conf.value

  /** The columns of the files, under their physical names. */
  def fileColumns: StructType = shared.value.fileColumns

  /** What the files of this write in this executor have shown of their columns. */
  def dictionaryFallbacks: DictionaryFallbacks = shared.value.dictionaryFallbacks

  def compression: CompressionCodecName = ParquetOutputFormat.getCompression(hadoopConf)

  def absolutePath(relativePath: String): Path = new Path(new Path(tablePath), relativePath)

  /** A unique path, relative to the table. */
  def newRelativePath(taskPartition: Int, partitionValues: Seq[String]): String =
    paths.next(
      taskPartition,
      PartitionPaths.directory(partitionNames.toSeq, partitionValues),
      compression.getExtension + ".parquet"
    )

  /** Packs deletion vectors into files of the write. */
  def newVectorFile(store: DeletionVectorStore, maxFileBytes: Long): DeletionVectorFileWriter =
    store.newWriter(
      new Path(tablePath),
      paths.randomPrefixLength.getOrElse(0),
      maxFileBytes,
      () => paths.newId()
    )
}

/** What the tasks of a write share in an executor. */
private final class ExecutorState(val conf: SerializableConfiguration) extends Serializable {
  @transient lazy val dictionaryFallbacks: DictionaryFallbacks = DictionaryFallbacks.of(conf.value)
  @transient lazy val fileColumns: StructType = DataType.fromJson(
    conf.value.get(ParquetWriteSupport.SPARK_ROW_SCHEMA)
  ).asInstanceOf[StructType]
}

private object ExecutorState {
  def broadcast(spark: SparkSession, conf: Configuration): Broadcast[ExecutorState] =
    spark.sparkContext.broadcast(new ExecutorState(new SerializableConfiguration(conf)))
}

private[deltaic] object DataWriteSpec {

  /** The first half of the UUIDs in the names of the files of one write. */
  def newUuidPrefix(): Long = NewFilePaths.newUuidPrefix()

  /** Whether a file in the table has a name with this prefix, whatever its kind. */
  def isNamed(writeUuidPrefix: Long, fileName: String): Boolean =
    NewFilePaths.hasUuidPrefix(writeUuidPrefix, fileName)

  /**
   * @param options         the write's options
   * @param checks          conditions on every row
   * @param rowTracking     further columns of files: the materialized row tracking columns of copied rows
   * @param writeUuidPrefix the same for all files of one write
   */
  def forTable(
      spark: SparkSession,
      table: WrittenTable,
      options: Map[String, String],
      checks: Seq[RowCheck] = Nil,
      rowTracking: Seq[StructField] = Nil,
      writeUuidPrefix: Long = newUuidPrefix()
  ): DataWriteSpec = {
    import table._
    val sqlConf = WriteInternals.sqlConf(spark)
    val ignoringCase = CaseInsensitiveMap(options)
    val dataSchema = StructType(schema.filterNot(f => partitionColumns.contains(f.name)))
    // A table without columns has no rows to write, but a DELETE may still build a spec for it.
    val storedSchema = VoidColumns.without(path, dataSchema)
    if (storedSchema.isEmpty && (partitionColumns ++ dataSchema).nonEmpty)
      throw if (dataSchema.isEmpty) noDataColumns(path) else VoidColumns.alone(path)
    val fileSchema =
      StructType(
        storedSchema ++ rowTracking ++
          (if (materializesPartitions) partitionColumns.map(schema(_)) else Nil)
      )
    val hadoopConf = WriteInternals.hadoopConf(spark, options)
    ParquetFormat.writerVersion(configuration, ignoringCase)
      .foreach(hadoopConf.set(ParquetOutputFormat.WRITER_VERSION, _))
    configureParquet(
      hadoopConf,
      PhysicalSchema.of(fileSchema, columnMapping),
      ignoringCase,
      sqlConf
    )
    new DataWriteSpec(
      path,
      RowLayout(
        StructType(schema ++ rowTracking),
        rowTracking.length,
        partitionColumns.map(schema.fieldIndex).toArray,
        columnMapping,
        materializesPartitions
      ),
      NewFilePaths(FileKind.Data, writeUuidPrefix, randomPrefixLength(configuration)),
      checks,
      StatisticsColumns.select(
        dataSchema,
        configuration,
        PhysicalSchema.nameOf(_, columnMapping),
        clusteredBy
      ),
      maxRecordsPerFile(ignoringCase, sqlConf),
      tags,
      shredsVariants && FirstRows.haveVariants(fileSchema),
      ExecutorState.broadcast(spark, hadoopConf)
    )
  }

  /**
   * For the change data files of a write: its rows, with the change type as the last column. The rows
   * are in the table already, or will be, so nothing is checked.
   *
   * @param data the spec of the write's data files
   */
  def forChanges(
      spark: SparkSession,
      data: DataWriteSpec,
      changeType: StructField,
      options: Map[String, String]
  ): DataWriteSpec = {
    val schema = StructType(data.schema.dropRight(data.numRowTrackingColumns)).add(changeType)
    val inFiles = VoidColumns.without(
      data.tablePath,
      StructType(schema.indices.filterNot(data.partitionOrdinals.contains(_)).map(schema(_)))
    )
    val hadoopConf = WriteInternals.hadoopConf(spark, options)
    hadoopConf.set(
      ParquetOutputFormat.WRITER_VERSION,
      ParquetOutputFormat.getWriterVersion(data.hadoopConf).toString
    )
    configureParquet(
      hadoopConf,
      PhysicalSchema.of(inFiles, data.layout.columnMapping),
      CaseInsensitiveMap(options),
      WriteInternals.sqlConf(spark)
    )
    new DataWriteSpec(
      data.tablePath,
      data.layout.copy(schema = schema, numRowTrackingColumns = 0, materializesPartitions = false),
      data.paths.copy(kind = FileKind.Changes),
      Nil,
      StatisticsColumns(Nil, stringPrefixLength = 0), // these files are not skipped by statistics
      data.maxRecordsPerFile,
      Map.empty,
      shredsVariants = false,
      ExecutorState.broadcast(spark, hadoopConf)
    )
  }

  /**
   * Sets what Spark's writer reads from the configuration. Types are encoded as the Parquet
   * format defines them, and timestamps as 64-bit microseconds, regardless of the session's settings: the
   * statistics and other engines rely on it.
   */
  private def configureParquet(
      conf: Configuration,
      fileSchema: StructType,
      options: CaseInsensitiveMap[String],
      sqlConf: SQLConf
  ): Unit = {
    ParquetWriteSupport.setSchema(fileSchema, conf)
    val codec = new ParquetOptions(options, sqlConf).compressionCodecClassName
    conf.set(ParquetOutputFormat.COMPRESSION, codec)
    conf.set(SQLConf.PARQUET_WRITE_LEGACY_FORMAT.key, "false")
    conf.set(
      SQLConf.PARQUET_OUTPUT_TIMESTAMP_TYPE.key,
      SQLConf.ParquetOutputTimestampType.TIMESTAMP_MICROS.toString
    )
    conf.set(SQLConf.PARQUET_FIELD_ID_WRITE_ENABLED.key, "true")
    conf.set(SQLConf.LEGACY_PARQUET_NANOS_AS_LONG.key, "false")
    conf.set(
      SQLConf.PARQUET_ANNOTATE_VARIANT_LOGICAL_TYPE.key,
      sqlConf.parquetAnnotateVariantLogicalType.toString
    )
    conf.set(SQLConf.PARQUET_REBASE_MODE_IN_WRITE.key, rebaseMode(sqlConf).toString)
  }

  /**
   * Dates and times are never rebased to the Julian calendar: a table has no metadata for
   * that.
   */
  private def rebaseMode(sqlConf: SQLConf): LegacyBehaviorPolicy.Value =
    sqlConf.getConf(SQLConf.PARQUET_REBASE_MODE_IN_WRITE) match {
      case LegacyBehaviorPolicy.EXCEPTION => LegacyBehaviorPolicy.EXCEPTION
      case _ => LegacyBehaviorPolicy.CORRECTED
    }

  private def maxRecordsPerFile(options: CaseInsensitiveMap[String], sqlConf: SQLConf): Long =
    options.get("maxRecordsPerFile") match {
      case None => math.max(sqlConf.maxRecordsPerFile, 0L)
      case Some(text) =>
        text.trim.toLongOption.map(math.max(_, 0L)).getOrElse {
          throw DeltaicException(
            "DELTAIC_INVALID_WRITE_OPTION",
            Map(
              "option" -> "maxRecordsPerFile",
              "value" -> text,
              "valid" -> "a number of rows, where 0 or less means no limit"
            )
          )
        }
    }

  def randomPrefixLength(properties: Map[String, String]): Option[Int] =
    Option.when(TableProperties.isTrue(properties, "delta.randomizeFilePrefixes")) {
      StatisticsColumns.intProperty(properties, "delta.randomPrefixLength")
    }

  private def noDataColumns(tablePath: String): DeltaicThrowable =
    DeltaicException("DELTAIC_NO_DATA_COLUMNS", Map("table" -> tablePath))
}
