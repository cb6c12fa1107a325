package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, Max, Min}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{CountedRows, KeyMark, Repeats, StoredRows}
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table
import org.apache.spark.sql.execution.datasources.{
  HadoopFsRelation,
  LogicalRelation,
  PartitioningAwareFileIndex
}

import io.deltaic.spark.SessionSettings
import io.deltaic.spark.catalog.DeltaicTable

/**
 * What a change is matched with, if its keys may be read before the rows themselves.
 *
 * Both readings must find the same rows, or rows would be missed. So nothing in it may be random, or be
 * left to a function of the user, and what it comes from must not change in between: values in the plan,
 * files that have been listed, rows that are stored, and tables of ours at one version; see [[Repeats]].
 * Nor may it be dear to read: it is small, and rows are chosen and projected, but not joined, grouped or
 * sorted.
 *
 * @param planned the same, once filters have chosen files
 */
private[sql] final class KeySource private (
    spark: SparkSession,
    source: LogicalPlan,
    planned: LogicalPlan
) {

  /**
   * What holds of all rows of the table that have a key of the source: that the key is among those, if
   * they are few enough to be sent to all tasks, and else that it lies between the least and the greatest.
   * A scan is told either, but of what is computed from its columns only the bounds.
   */
  def conditions(equated: Seq[KeyPair]): Seq[Expression] = {
    val pairs = equated.map(_.narrowed)
    if (areFew(pairs.map(_.other))) notNull(pairs) ++ (amongKeys(pairs) +: boundsBeside(pairs))
    else pairs.flatMap(bounds)
  }

  /**
   * Spark infers as much of the join, and filters above what the MERGE adds to the rows of the table. By the time that
   * the keys have become a semi join, such a filter is superfluous, and Spark takes it out in one pass or in two.
   */
  private def notNull(pairs: Seq[KeyPair]): Seq[Expression] =
    pairs.collect { case KeyPair(own: Attribute, _) if own.nullable => IsNotNull(own) }

  /** The same for rows that are asked to have a row of the source as it is. */
  def conditions(values: Seq[Expression], rows: ListQuery): Seq[Expression] = {
    val in = InSubquery(values, rows)
    val pairs = values.zip(rows.plan.output).map { case (own, other) => KeyPair(own, other) }
    if (!pairs.forall(_.isUsable)) Seq(in)
    else if (areFew(rows.plan.output)) {
      val marked = rows.copy(plan = KeyMark.filter(rows.plan.output.head, rows.plan))
      InSubquery(values, broadcast(marked)) +: boundsBeside(pairs)
    } else in +: pairs.flatMap(bounds)
  }

  private def amongKeys(pairs: Seq[KeyPair]): Expression = {
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
      KeySource.maxKeyBytes(spark)

  /** Spark gives a scan keys that have been broadcast anyway. */
  private def prunesByKeys: Boolean =
    spark.sessionState.conf.dynamicPartitionPruningEnabled &&
    spark.sessionState.conf.exchangeReuseEnabled
}

private[sql] object KeySource {

  /** @param only what holds of each of its rows that may match */
  def of(
      spark: SparkSession,
      source: LogicalPlan,
      only: Seq[Expression] = Nil
  ): Option[KeySource] = {
    val all = CountedRows.uncounted(source)
    val rows = only.reduceOption(And).fold(all)(Filter(_, all))
    if (isRepeatable(rows)) {
      val known = planned(spark, rows)
      Option.when(known.stats.sizeInBytes <= maxBytes(spark))(new KeySource(spark, rows, known))
    } else None
  }

  /** Whether a source gets small and repeatable by being stored; how large an RDD is, nobody knows. */
  def mayBeStored(spark: SparkSession, rows: LogicalPlan): Boolean =
    !isRepeatable(rows) && {
      val read = planned(spark, rows).collectLeaves().filterNot(_.isInstanceOf[LogicalRDD])
      read.map(_.stats.sizeInBytes).sum <= maxBytes(spark)
    }

  /** Tells how much is read of it, as far as that is known once filters have chosen files. */
  private def planned(spark: SparkSession, rows: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer(
      spark.sessionState.optimizer.execute(StoredRows.sized(spark, rows))
    )

  private def isRepeatable(plan: LogicalPlan): Boolean = {
    val isKnown = plan match {
      case _: Project | _: Filter | _: SubqueryAlias | _: View | _: Union => true
      case _: LocalRelation | _: Range | _: OneRowRelation | StoredRows(_) => true
      case LogicalRelation(files: HadoopFsRelation, _, _, false, _) =>
        // which has listed them
        files.location.isInstanceOf[PartitioningAwareFileIndex] && Repeats.files(files)
      case ExtractV2Table(table: DeltaicTable) => table.readsOneVersion
      case _ => false
    }
    isKnown && Repeats.node(plan) && !plan.expressions.exists(SubqueryExpression.hasSubquery) &&
    plan.children.forall(isRepeatable)
  }

  private def maxBytes(spark: SparkSession): Long =
    SessionSettings.bytes(spark, "rowLevel.keyPruning.maxSourceBytes", DefaultMaxBytes)

  private val DefaultMaxBytes = 256L << 20

  /** What a table may have that Spark broadcasts by itself. */
  private def maxKeyBytes(spark: SparkSession): Long =
    SessionSettings.bytes(
      spark,
      "rowLevel.keyPruning.maxBroadcastBytes",
      spark.sessionState.conf.autoBroadcastJoinThreshold
    )
}
