package org.apache.spark.sql.deltaic.scan

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.WholeStageCodegenExec
import org.apache.spark.sql.execution.datasources.DataSourceStrategy
import org.apache.spark.sql.execution.datasources.parquet._
import org.apache.spark.sql.sources.Filter
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** The internals of Spark that are needed to use its Parquet reader directly. */
object ParquetScanInternals {

  /** The column that Spark's reader fills with row positions; it must be requested as nullable. */
  val generatedRowIndex: StructField =
    ParquetFileFormat.ROW_INDEX_FIELD.copy(
      name = ParquetFileFormat.ROW_INDEX_TEMPORARY_COLUMN_NAME,
      nullable = true
    )

  /** Whether Spark's reader can read these columns in batches. */
  def supportsBatches(spark: SparkSession, stored: StructType): Boolean =
    ParquetUtils.isBatchReadSupportedForSchema(spark.sessionState.conf, stored)

  /** Whether generated code accepts batches of these columns. */
  def wantsBatches(spark: SparkSession, output: StructType): Boolean = {
    val conf = spark.sessionState.conf
    conf.wholeStageEnabled && !WholeStageCodegenExec.isTooManyFields(conf, output)
  }

  /** Filters in the form in which the Parquet reader selects row groups; unsupported ones are left out. */
  def sourceFilters(filters: Seq[Expression]): Seq[Filter] =
    filters.flatMap(DataSourceStrategy.translateFilter(_, supportNestedPredicatePushdown = true))

  def parquetOptions(spark: SparkSession, options: CaseInsensitiveStringMap): ParquetOptions =
    new ParquetOptions(options.asCaseSensitiveMap.asScala.toMap, spark.sessionState.conf)
}
