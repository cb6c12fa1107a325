package io.deltaic.spark.sql.analysis.merge

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, Max, Min}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.merge.{
  CountedRows,
  DeterminismCheck,
  KeyMark,
  MaterializedMergeSource
}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table
import org.apache.spark.sql.execution.datasources.{
  HadoopFsRelation,
  LogicalRelation,
  PartitioningAwareFileIndex
}

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.util.SessionSettings

/**
 * The source of a change, if its keys can be read before the rows themselves.
 *
 * Both reads must return the same rows, or matches would be missed. So the source must have no nondeterministic or
 * user-defined functions, and its inputs must not change in between: local relations,
 * listed files, materialized rows, and Deltaic tables at a fixed version; see [[DeterminismCheck]].
 * It must not be expensive to read: it is small, and has filters and projections, but no joins, aggregates or
 * sorts.
 *
 * @param planned the same after file pruning
 */
private[sql] final class MergeSourceKeys private (
    spark: SparkSession,
    source: LogicalPlan,
    planned: LogicalPlan
) {

  /**
   * Conditions that all rows of the table with a key of the source satisfy: the key is one of these, if
   * they are few enough to be broadcast, and else it is between the smallest and the largest of them.
   * Both are pushed to a scan; for an expression over its columns, only the bounds are.
   */
  def conditions(equated: Seq[KeyPair]): Seq[Expression] = {
    val pairs = equated.map(_.narrowed)
    if (areFew(pairs.map(_.other))) notNull(pairs) ++ (inKeys(pairs) +: boundsBeside(pairs))
    else pairs.flatMap(bounds)
  }

  /**
   * Spark infers these conditions from the join, and filters above the columns that the MERGE adds to the rows of the
   * table. After the keys have become a semi join, such a filter is redundant, and Spark removes it in one or two passes.
   */
  private def notNull(pairs: Seq[KeyPair]): Seq[Expression] =
    pairs.collect { case KeyPair(own: Attribute, _) if own.nullable => IsNotNull(own) }

  /** The same for the condition `values IN (rows)`, where the rows are the source itself. */
  def conditions(values: Seq[Expression], rows: ListQuery): Seq[Expression] = {
    val in = InSubquery(values, rows)
    val pairs = values.zip(rows.plan.output).map { case (own, other) => KeyPair(own, other) }
    if (!pairs.forall(_.isUsable)) Seq(in)
    else if (areFew(rows.plan.output)) {
      val marked = rows.copy(plan = KeyMark.filter(rows.plan.output.head, rows.plan))
      InSubquery(values, broadcast(marked)) +: boundsBeside(pairs)
    } else in +: pairs.flatMap(bounds)
  }

  private def inKeys(pairs: Seq[KeyPair]): Expression = {
    val keys = pairs.zipWithIndex.map { case (pair, i) => Alias(pair.other, s"key_$i")() }
    val rows = KeyMark.filter(keys.head.toAttribute, Project(keys, source))
    InSubquery(pairs.map(_.own), broadcast(ListQuery(rows, numCols = keys.size)))
  }

  private def broadcast(keys: ListQuery): ListQuery =
    keys.copy(hint = Some(HintInfo(Some(BROADCAST))))

  private def boundsBeside(pairs: Seq[KeyPair]): Seq[Expression] =
    pairs.filterNot(_.isColumn && prunesByKeys).flatMap(bounds)

  private def bounds(pair: KeyPair): Seq[Expression] = Seq(
    GreaterThanOrEqual(pair.own, aggregate(Min(pair.other))),
    LessThanOrEqual(pair.own, aggregate(Max(pair.other)))
  )

  private def aggregate(function: AggregateFunction): Expression =
    ScalarSubquery(
      Aggregate(Nil, Seq(Alias(function.toAggregateExpression(), "bound")()), source)
    )

  private def areFew(keys: Seq[Expression]): Boolean =
    Project(keys.map(key => Alias(key, "key")()), planned).stats.sizeInBytes <=
      MergeSourceKeys.maxKeyBytes(spark)

  /** Whether Spark pushes broadcast keys to a scan by itself. */
  private def prunesByKeys: Boolean =
    spark.sessionState.conf.dynamicPartitionPruningEnabled &&
    spark.sessionState.conf.exchangeReuseEnabled
}

private[sql] object MergeSourceKeys {

  /** @param only conditions that its rows must satisfy to match */
  def of(
      spark: SparkSession,
      source: LogicalPlan,
      only: Seq[Expression] = Nil
  ): Option[MergeSourceKeys] = {
    val all = CountedRows.uncounted(source)
    val rows = only.reduceOption(And).fold(all)(Filter(_, all))
    if (isRepeatable(rows)) {
      val pruned = planned(spark, rows)
      Option.when(pruned.stats.sizeInBytes <= maxBytes(spark))(
        new MergeSourceKeys(spark, rows, pruned)
      )
    } else None
  }

  /** Whether a source becomes small and repeatable by materialization; the size of an RDD is unknown. */
  def mayBeStored(spark: SparkSession, rows: LogicalPlan): Boolean =
    !isRepeatable(rows) && {
      val read = planned(spark, rows).collectLeaves().filterNot(_.isInstanceOf[LogicalRDD])
      read.map(_.stats.sizeInBytes).sum <= maxBytes(spark)
    }

  /** The optimized plan, with statistics after file pruning. */
  private def planned(spark: SparkSession, rows: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer(
      spark.sessionState.optimizer.execute(MaterializedMergeSource.sized(spark, rows))
    )

  private def isRepeatable(plan: LogicalPlan): Boolean = {
    val isSupported = plan match {
      case _: Project | _: Filter | _: SubqueryAlias | _: View | _: Union => true
      case _: LocalRelation | _: Range | _: OneRowRelation | MaterializedMergeSource(_) => true
      case LogicalRelation(files: HadoopFsRelation, _, _, false, _) =>
        // Such an index has already listed the files.
        files.location.isInstanceOf[PartitioningAwareFileIndex] && DeterminismCheck.files(files)
      case ExtractV2Table(table: DeltaicTable) => table.readsOneVersion
      case _ => false
    }
    isSupported && DeterminismCheck.node(plan) &&
    !plan.expressions.exists(SubqueryExpression.hasSubquery) && plan.children.forall(isRepeatable)
  }

  private def maxBytes(spark: SparkSession): Long =
    SessionSettings.bytes(spark, "rowLevel.keyPruning.maxSourceBytes", DefaultMaxBytes)

  private val DefaultMaxBytes = 256L << 20

  /** By default, the size up to which Spark broadcasts a table. */
  private def maxKeyBytes(spark: SparkSession): Long =
    SessionSettings.bytes(
      spark,
      "rowLevel.keyPruning.maxBroadcastBytes",
      spark.sessionState.conf.autoBroadcastJoinThreshold
    )
}
