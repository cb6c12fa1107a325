package org.apache.spark.sql.deltaic.scan

import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  AttributeSet,
  DynamicPruning,
  ExprId,
  Expression,
  GetStructField,
  ScalarSubquery,
  V2ExpressionUtils
}
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.catalyst.trees.TreePattern.SCALAR_SUBQUERY
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, DataSourceV2ScanRelation}

/** Filters that a scan receives while the query runs. */
object RuntimeFilterInternals {

  /** Whether Spark created the filter only for the scan, so that it is not evaluated on rows. */
  def isForScanAlone(filter: Expression): Boolean = filter.isInstanceOf[DynamicPruning]

  /**
   * Whether the filter waits for the value of a subquery and can then be used to skip files.
   *
   * @param skippable the columns that can be used to skip files
   */
  def awaitsValue(filter: Expression, skippable: => AttributeSet): Boolean =
    filter.containsPattern(SCALAR_SUBQUERY) && filter.references.nonEmpty &&
    filter.references.subsetOf(skippable)

  /**
   * Whether it uses one of several values that Spark computes in a merged subquery, which Spark does not pass to
   * scans.
   */
  def awaitsMergedValue(filter: Expression): Boolean = filter.exists {
    case GetStructField(_: ScalarSubquery, _, _) => true
    case _ => false
  }

  /**
   * The filter with a separate subquery for each such value. Spark runs their common plan once.
   * Adaptive execution plans a query several times, and identifies subqueries by the ids of the
   * first planning; so the new ids are derived from the id of the merged subquery.
   */
  def withValuesApart(filter: Expression): Expression = filter.transform {
    case GetStructField(values: ScalarSubquery, ordinal, _) if !values.isCorrelated =>
      val value = Alias(GetStructField(values.plan.output.head, ordinal), "value")()
      ScalarSubquery(Project(Seq(value), values.plan), exprId = idOf(values.exprId, ordinal))
  }

  /** Spark's own ids are not negative. */
  private def idOf(values: ExprId, ordinal: Int): ExprId =
    values.copy(id = -1L - (values.id * MaxValues + ordinal))

  private val MaxValues = 1L << 12

  /** The plan of Spark's own strategy for a scan, but with these runtime filters and no filter above it. */
  def batchScan(relation: DataSourceV2ScanRelation, runtimeFilters: Seq[Expression]): SparkPlan =
    BatchScanExec(
      relation.output,
      relation.scan,
      runtimeFilters,
      relation.ordering,
      relation.relation.table,
      relation.keyGroupedPartitioning
    )

  /** A predicate as an expression whose columns are named and not resolved. */
  def toCatalyst(predicate: Predicate): Option[Expression] = V2ExpressionUtils.toCatalyst(predicate)
}
