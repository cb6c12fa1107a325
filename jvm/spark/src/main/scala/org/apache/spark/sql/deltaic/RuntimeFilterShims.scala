package org.apache.spark.sql.deltaic

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

/** Filters that a scan is given while the query runs. */
object RuntimeFilterShims {

  /** Whether Spark made the filter for the scan alone, so that nobody else need evaluate it. */
  def isForScanAlone(filter: Expression): Boolean = filter.isInstanceOf[DynamicPruning]

  /**
   * Whether the filter waits for the value of a subquery and can leave out files by it then.
   *
   * @param skippable the columns that files can be left out by
   */
  def awaitsValue(filter: Expression, skippable: => AttributeSet): Boolean =
    filter.containsPattern(SCALAR_SUBQUERY) && filter.references.nonEmpty &&
    filter.references.subsetOf(skippable)

  /** Whether it is one of several values that Spark computes in one subquery, of which no scan is told. */
  def awaitsMergedValue(filter: Expression): Boolean = filter.exists {
    case GetStructField(_: ScalarSubquery, _, _) => true
    case _ => false
  }

  /**
   * With a subquery for each such value. Below them, Spark runs the same plan once. Adaptive execution
   * plans a query several times, and knows subqueries by ids that it has seen the first time; so these
   * follow from that of the one they are made of.
   */
  def withValuesApart(filter: Expression): Expression = filter.transform {
    case GetStructField(values: ScalarSubquery, ordinal, _) if !values.isCorrelated =>
      val value = Alias(GetStructField(values.plan.output.head, ordinal), "value")()
      ScalarSubquery(Project(Seq(value), values.plan), exprId = idOf(values.exprId, ordinal))
  }

  /** Ids of Spark are not negative. */
  private def idOf(values: ExprId, ordinal: Int): ExprId =
    values.copy(id = -1L - (values.id * MaxValues + ordinal))

  private val MaxValues = 1L << 12

  /** What Spark's own strategy makes of a scan, but with these filters and none above it. */
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
