package org.apache.spark.sql.execution.datasources.parquet

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.hadoop.metadata.FileMetaData
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
import org.apache.spark.sql.execution.datasources.PartitioningUtils
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{DataType, StructType}

/** How Spark reads folders of Parquet files. It is in Spark's package because its functions are private to it. */
object ParquetFolderInternals {

  /**
   * The type that Spark infers for a partition column, by the session's settings.
   *
   * @param values the distinct values, as in the names of directories; at least one
   */
  def inferredType(column: String, values: Seq[String], conf: SQLConf): DataType = {
    val name = ExternalCatalogUtils.escapePathName(column)
    PartitioningUtils.parsePartitions(
      values.map(value => new Path(null, null, s"/$name=$value")),
      conf.partitionColumnTypeInferenceEnabled,
      Set.empty[Path],
      None,
      conf.caseSensitiveAnalysis,
      conf.validatePartitionColumns,
      conf.sessionLocalTimeZone,
      ignoreInvalidPartitionPaths = false
    ).partitionColumns.head.dataType
  }

  /** Copies the session's settings by which Spark converts the schema of a file. */
  def configure(hadoopConf: Configuration, conf: SQLConf): Configuration = {
    Seq(
      SQLConf.PARQUET_BINARY_AS_STRING,
      SQLConf.PARQUET_INT96_AS_TIMESTAMP,
      SQLConf.CASE_SENSITIVE,
      SQLConf.PARQUET_INFER_TIMESTAMP_NTZ_ENABLED,
      SQLConf.LEGACY_PARQUET_NANOS_AS_LONG,
      SQLConf.PARQUET_FIELD_ID_READ_ENABLED,
      SQLConf.PARQUET_IGNORE_VARIANT_ANNOTATION
    ).foreach(entry => hadoopConf.set(entry.key, conf.getConf(entry).toString))
    hadoopConf
  }

  /** The columns of a file as its Parquet types say, under settings of [[configure]]. */
  def schema(file: FileMetaData, hadoopConf: Configuration): StructType =
    new ParquetToSparkSchemaConverter(hadoopConf).convert(file.getSchema)

  /** The columns of a file as its writer says, if it was Spark. They may be those of a file that it was copied from. */
  def declaredSchema(file: FileMetaData): Option[StructType] =
    Option(file.getKeyValueMetaData.get(ParquetReadSupport.SPARK_METADATA_KEY)).flatMap { json =>
      try Some(DataType.fromJson(json).asInstanceOf[StructType])
      catch { case NonFatal(_) => None }
    }
}
