package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, Max, Min}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.CountedRows
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table
import org.apache.spark.sql.execution.datasources.{
  HadoopFsRelation,
  LogicalRelation,
  PartitioningAwareFileIndex
}
import org.apache.spark.sql.types._

import io.deltaic.spark.SessionSettings
import io.deltaic.spark.catalog.DeltaicTable

/**
 * What a change is matched with, if its keys may be read before the rows themselves.
 *
 * Both readings must find the same rows, or rows would be missed. So nothing in it may be random, and
 * what it comes from must not change in between: values in the plan, files that have been listed, and
 * tables of ours at one version. Nor may it be dear to read: it is small, and rows are chosen and
 * projected, but not joined, grouped or sorted.
 */
private[sql] final class KeySource private (source: LogicalPlan) {

  def least(key: Expression): Expression = aggregate(Min(key))

  def greatest(key: Expression): Expression = aggregate(Max(key))

  /** Types whose order is the one that comparisons have. */
  def canBound(key: Expression): Boolean = key.deterministic && (key.dataType match {
    case _: NumericType | DateType | TimestampType | TimestampNTZType | StringType => true
    case _ => false
  })

  private def aggregate(function: AggregateFunction): Expression =
    ScalarSubquery(
      Aggregate(Nil, Seq(Alias(function.toAggregateExpression(), "bound")()), source)
    )
}

private[sql] object KeySource {

  def of(spark: SparkSession, source: LogicalPlan): Option[KeySource] = {
    val rows = CountedRows.uncounted(source)
    Option.when(isRepeatable(rows) && sizeBytes(spark, rows) <= maxBytes(spark)) {
      new KeySource(rows)
    }
  }

  /** What is read of it, as far as that is known once filters have chosen files. */
  private def sizeBytes(spark: SparkSession, rows: LogicalPlan): BigInt =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      spark.sessionState.optimizer.execute(rows).stats.sizeInBytes
    }

  private def isRepeatable(plan: LogicalPlan): Boolean = {
    val isKnown = plan match {
      case _: Project | _: Filter | _: SubqueryAlias | _: View | _: Union => true
      case _: LocalRelation | _: Range | _: OneRowRelation => true
      case LogicalRelation(files: HadoopFsRelation, _, _, false, _) =>
        files.location.isInstanceOf[PartitioningAwareFileIndex] // which has listed them
      case ExtractV2Table(table: DeltaicTable) => table.readsOneVersion
      case _ => false
    }
    isKnown && plan.expressions.forall(e =>
      e.deterministic && !SubqueryExpression.hasSubquery(e)
    ) &&
    plan.children.forall(isRepeatable)
  }

  private def maxBytes(spark: SparkSession): Long =
    SessionSettings.bytes(spark, "rowLevel.keyPruning.maxSourceBytes", DefaultMaxBytes)

  private val DefaultMaxBytes = 256L << 20
}
