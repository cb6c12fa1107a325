package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.spark.write.CachedPlans

/**
 * Has a query read no cached rows that are older than what this process has committed to their table.
 *
 * {{{
 *   Filter                                       Filter
 *   +- InMemoryRelation t, cached before    =>   +- InMemoryRelation t, cached again
 * }}}
 *
 * A commit refreshes what is cached of its table right away, but Spark may have taken an entry out to plan it
 * again. That is seen when the rows are wanted. Nothing is looked up for a query that reads no cached rows.
 */
private[spark] final case class ReadFreshRows(spark: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = CachedPlans.withFreshRows(spark, plan)
}
