package org.apache.spark.sql.deltaic

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.ParquetInputFormat
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.WholeStageCodegenExec
import org.apache.spark.sql.execution.datasources.DataSourceStrategy
import org.apache.spark.sql.execution.datasources.parquet._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.SerializableConfiguration

/** What driving Spark's Parquet reader from outside needs of its internals. */
object ParquetScanShims {

  /** The column that Spark's reader fills with row positions; it must be asked for as nullable. */
  val generatedRowIndex: StructField =
    ParquetFileFormat.ROW_INDEX_FIELD.copy(
      name = ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME,
      nullable = true
    )

  /** Whether Spark's reader can read these columns in batches. */
  def supportsBatches(spark: SparkSession, stored: StructType): Boolean =
    ParquetUtils.isBatchReadSupportedForSchema(spark.sessionState.conf, stored)

  /** Whether generated code takes batches of these columns. */
  def wantsBatches(spark: SparkSession, output: StructType): Boolean = {
    val conf = spark.sessionState.conf
    conf.wholeStageEnabled && !WholeStageCodegenExec.isTooManyFields(conf, output)
  }

  /** Filters as the Parquet reader takes them to choose row groups; those it knows nothing of are left out. */
  def sourceFilters(filters: Seq[Expression]): Seq[Filter] =
    filters.flatMap(DataSourceStrategy.translateFilter(_, supportNestedPredicatePushdown = true))

  def parquetOptions(spark: SparkSession, options: CaseInsensitiveStringMap): ParquetOptions =
    new ParquetOptions(options.asCaseSensitiveMap.asScala.toMap, spark.sessionState.conf)

  /**
   * The Hadoop configuration from which the reader learns its schema and its session settings.
   *
   * @param byFieldId whether columns with a field id are found by it, and by nothing else: one that
   *   a file lacks, and every one of a file without ids, is null
   */
  def broadcastReadConfiguration(
      spark: SparkSession,
      requested: StructType,
      options: CaseInsensitiveStringMap,
      byFieldId: Boolean
  ): Broadcast[SerializableConfiguration] = {
    val conf = spark.sessionState.conf
    val hadoop: Configuration =
      spark.sessionState.newHadoopConfWithOptions(options.asCaseSensitiveMap.asScala.toMap)
    hadoop.set(ParquetInputFormat.READ_SUPPORT_CLASS, classOf[ParquetReadSupport].getName)
    hadoop.set(ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA, requested.json)
    hadoop.set(ParquetWriteSupport.SPARK_ROW_SCHEMA, requested.json)
    hadoop.set(SQLConf.SESSION_LOCAL_TIMEZONE.key, conf.sessionLocalTimeZone)
    ParquetWriteSupport.setSchema(requested, hadoop)
    Seq(
      SQLConf.NESTED_SCHEMA_PRUNING_ENABLED.key -> conf.nestedSchemaPruningEnabled,
      SQLConf.CASE_SENSITIVE.key -> conf.caseSensitiveAnalysis,
      SQLConf.PARQUET_BINARY_AS_STRING.key -> conf.isParquetBinaryAsString,
      SQLConf.PARQUET_INT96_AS_TIMESTAMP.key -> conf.isParquetINT96AsTimestamp,
      SQLConf.PARQUET_INFER_TIMESTAMP_NTZ_ENABLED.key -> conf.parquetInferTimestampNTZEnabled,
      SQLConf.LEGACY_PARQUET_NANOS_AS_LONG.key -> conf.legacyParquetNanosAsLong,
      SQLConf.PARQUET_FIELD_ID_READ_ENABLED.key -> byFieldId,
      SQLConf.IGNORE_MISSING_PARQUET_FIELD_ID.key -> byFieldId
    ).foreach { case (key, value) => hadoop.setBoolean(key, value) }
    SerializableConfiguration.broadcast(spark.sparkContext, hadoop)
  }
}
