package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.expressions.{DynamicPruning, Expression, V2ExpressionUtils}
import org.apache.spark.sql.catalyst.trees.TreePattern.SCALAR_SUBQUERY
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.v2.{BatchScanExec, DataSourceV2ScanRelation}

/** Filters that a scan is given while the query runs. */
object RuntimeFilterShims {

  /** Whether Spark made the filter for the scan alone, so that nobody else need evaluate it. */
  def isForScanAlone(filter: Expression): Boolean = filter.isInstanceOf[DynamicPruning]

  /** Whether the filter waits for the value of a subquery and can leave out files by it then. */
  def awaitsValue(filter: Expression, relation: DataSourceV2ScanRelation): Boolean =
    filter.containsPattern(SCALAR_SUBQUERY) && filter.references.nonEmpty &&
    filter.references.subsetOf(relation.runtimeFilterAttrs)

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
