package io.deltaic.spark.scan

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, SubqueryExpression}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
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

import io.deltaic.spark.skipping.FileSelection

/**
 * Takes filters, columns, limits and aggregates from the optimizer. Files are looked at only to answer
 * an aggregate, for which the plan is final: what Spark exchanges for a newer table, it has by then.
 *
 * @param onBuild told of each scan built, so that a row-level operation knows what it read
 * @param streams as [[TableScan]] has it
 * @param isChanged as [[TableScan]] has it
 */
private[spark] final class TableScanBuilder(
    spark: SparkSession,
    files: FileSource,
    schema: TableSchema,
    options: CaseInsensitiveStringMap,
    onBuild: TableScan => Unit = _ => (),
    streams: Option[String => MicroBatchStream] = None,
    isChanged: Boolean = false
) extends ScanBuilder
    with SupportsPushDownCatalystFilters
    with SupportsPushDownRequiredColumns
    with SupportsPushDownLimit
    with SupportsPushDownAggregates {

  private var filters: Seq[Expression] = Nil
  private var fileFilters: Seq[Expression] = Nil
  private var requiredColumns: StructType = schema.all
  private var source: FileSource = files
  private var tried: Option[(Aggregation, Option[AnswerFromLog])] = None
  private var answer: Option[AnswerFromLog] = None

  /**
   * Keeps every filter that can help to choose files or row groups, and returns those that must
   * still be evaluated for each row: all but the ones that partition values decide.
   */
  override def pushFilters(candidates: Seq[Expression]): Seq[Expression] = {
    val (usable, unusable) = candidates.partition(isUsable)
    filters = usable
    fileFilters = unusable.filter(FileMetadata.decidesFiles(_, schema))
    val remaining =
      if (files.heedsFilters) FileSelection.split(usable, schema.skipping).remaining else usable
    unusable ++ remaining
  }

  override def pushedFilters: Array[Predicate] = Array.empty

  override def pruneColumns(required: StructType): Unit = requiredColumns = required

  /** Spark keeps the limit and asks for it only where no filter is left to evaluate. */
  override def pushLimit(limit: Int): Boolean = files match {
    case all: SnapshotFiles if filtersAreDecided =>
      source = LimitedFiles(all, limit.toLong)
      true
    case _ => false
  }

  override def supportCompletePushDown(aggregation: Aggregation): Boolean =
    answerFor(aggregation).isDefined

  override def pushAggregation(aggregation: Aggregation): Boolean = {
    answer = answerFor(aggregation)
    answer.isDefined
  }

  override def build(): Scan = answer.getOrElse {
    val scan = new TableScan(
      spark,
      source,
      schema,
      requiredColumns,
      filters,
      fileFilters,
      options,
      streams,
      isChanged
    )
    onBuild(scan)
    scan
  }

  /** Spark asks whether there is an answer, and then for the answer, which may have taken a job. */
  private def answerFor(aggregation: Aggregation): Option[AnswerFromLog] = tried match {
    case Some((same, found)) if same eq aggregation => found
    case _ =>
      val scan = new TableScan(spark, files, schema, new StructType(), filters, Nil, options)
      val found = if (filtersAreDecided) MetadataAggregation.of(scan, aggregation) else None
      tried = Some((aggregation, found))
      found
  }

  private def filtersAreDecided: Boolean =
    fileFilters.isEmpty && FileSelection.split(filters, schema.skipping).remaining.isEmpty

  private def isUsable(filter: Expression): Boolean =
    filter.deterministic && !SubqueryExpression.hasSubquery(filter) &&
    !filter.references.exists(isHidden)

  private def isHidden(attribute: Attribute): Boolean =
    ScanColumns.isHidden(attribute.name) || FileMetadata.isMetadata(attribute.name, schema)
}
