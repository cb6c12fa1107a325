package io.deltaic.spark.sql.optimizer

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.spark.commit.CachedPlans

/**
 * Prevents a query from reading cached rows that are older than a commit of this process to their table.
 *
 * {{{
 *   Filter                                       Filter
 *   +- InMemoryRelation t, cached before    =>   +- InMemoryRelation t, cached again
 * }}}
 *
 * A commit refreshes the cached data of its table immediately, but Spark may have removed an entry to plan it
 * again. This is detected when the rows are read. A query without cached rows is not affected.
 */
private[spark] final case class ReadFreshRows(spark: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = CachedPlans.withFreshRows(spark, plan)
}
