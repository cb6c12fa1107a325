package io.deltaic.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, SubqueryExpression}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.{
  Scan,
  ScanBuilder,
  SupportsPushDownAggregates,
  SupportsPushDownLimit,
  SupportsPushDownRequiredColumns
}
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.spark.scan.files.{FileSource, LimitedFiles, ScanFilters, SnapshotFiles}
import io.deltaic.spark.schema.{FileMetadata, ScanColumns, TableSchema}
import io.deltaic.spark.skipping.FileSelection

/**
 * Accepts filters, columns, limits and aggregates from the optimizer. Files are inspected only to
 * compute an aggregate. By then the plan is final: Spark has already replaced the table by a newer
 * version.
 *
 * @param onBuild called with each scan built, so that a row-level operation can record what it read
 */
private[spark] final class TableScanBuilder(
    spark: SparkSession,
    files: FileSource,
    schema: TableSchema,
    options: CaseInsensitiveStringMap,
    context: ScanContext = ScanContext(),
    onBuild: TableScan => Unit = _ => ()
) extends ScanBuilder
    with SupportsPushDownCatalystFilters
    with SupportsPushDownRequiredColumns
    with SupportsPushDownLimit
    with SupportsPushDownAggregates {

  private var filters: ScanFilters = ScanFilters.none
  private var requiredColumns: StructType = schema.all
  private var source: FileSource = files
  private var tried: Option[(Aggregation, Option[MetadataOnlyScan])] = None
  private var metadataOnly: Option[MetadataOnlyScan] = None

  /**
   * Uses every filter that can help to select files or row groups, and returns those that must
   * still be evaluated for each row: all but the ones fully evaluated on partition values.
   */
  override def pushFilters(candidates: Seq[Expression]): Seq[Expression] = {
    val (usable, unusable) = candidates.partition(isUsable)
    filters = ScanFilters(usable, unusable.filter(FileMetadata.isFileFilter(_, schema)))
    val remaining =
      if (files.honorsFilters) FileSelection.split(usable, schema.skipping).remaining else usable
    unusable ++ remaining
  }

  override def pushedFilters: Array[Predicate] = Array.empty

  override def pruneColumns(required: StructType): Unit = requiredColumns = required

  /** Spark keeps its own limit, and pushes one down only if no filter remains to be evaluated. */
  override def pushLimit(limit: Int): Boolean = files match {
    case all: SnapshotFiles if filtersAreFullyEvaluated =>
      source = LimitedFiles(all, limit.toLong)
      true
    case _ => false
  }

  override def supportCompletePushDown(aggregation: Aggregation): Boolean =
    metadataOnlyScan(aggregation).isDefined

  override def pushAggregation(aggregation: Aggregation): Boolean = {
    metadataOnly = metadataOnlyScan(aggregation)
    metadataOnly.isDefined
  }

  override def build(): Scan = metadataOnly.getOrElse {
    val scan = new TableScan(spark, source, schema, requiredColumns, filters, options, context)
    onBuild(scan)
    scan
  }

  /**
   * Spark first asks whether the aggregate can be pushed down, then requests the result. Computing it may run a
   * job.
   */
  private def metadataOnlyScan(aggregation: Aggregation): Option[MetadataOnlyScan] = tried match {
    case Some((same, found)) if same eq aggregation => found
    case _ =>
      val rowFilters = ScanFilters(filters.ofRows)
      val scan = new TableScan(spark, files, schema, new StructType(), rowFilters, options)
      val found = if (filtersAreFullyEvaluated) MetadataAggregation.of(scan, aggregation) else None
      tried = Some((aggregation, found))
      found
  }

  private def filtersAreFullyEvaluated: Boolean =
    filters.ofFiles.isEmpty &&
    FileSelection.split(filters.ofRows, schema.skipping).remaining.isEmpty

  private def isUsable(filter: Expression): Boolean =
    filter.deterministic && !SubqueryExpression.hasSubquery(filter) &&
    !filter.references.exists(isHidden)

  private def isHidden(attribute: Attribute): Boolean =
    ScanColumns.isHidden(attribute.name) || FileMetadata.isMetadata(attribute.name, schema)
}
