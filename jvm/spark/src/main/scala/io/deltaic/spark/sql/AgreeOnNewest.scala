package io.deltaic.spark.sql

import java.util

import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.deltaic.SessionShims
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import io.deltaic.spark.scan.{NewestSnapshots, ReadsNewest}

/**
 * Has all scans of a query read a table at one version. They are planned one after the other, those of subqueries
 * first, and others may commit in between. Spark loads a table once for each name, when it normalizes the plan, which
 * `cache()` does long before a DataFrame is executed.
 *
 * {{{
 *   Except                    Except
 *   :- t, newest at its scan  :- t, newest at the first scan
 *   +- t, newest at its scan  +- t, the same
 * }}}
 *
 * Spark normalizes the plan of each query once, whole, right before it looks for cached data and starts to
 * optimize: later rules see a subquery apart from the query it is in. The plans of cached data have been
 * normalized, too, so theirs are found. Nothing is looked up here.
 */
private[spark] object AgreeOnNewest extends Rule[LogicalPlan] {

  /** What is cached is planned anew as a query of its own, and then has what an earlier query agreed on. */
  override def apply(plan: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      val apart = agreeing(plan, None)
      SessionShims.analysedAs(plan, agreeing(apart, Some(new NewestSnapshots)))
    }

  /** A table that is in the plan several times stays the same object: planning compares tables very often. */
  private def agreeing(plan: LogicalPlan, newest: Option[NewestSnapshots]): LogicalPlan = {
    val tables = new util.IdentityHashMap[ReadsNewest, Table]
    plan.transformWithSubqueries { case relation: DataSourceV2Relation =>
      relation.table match {
        case table: ReadsNewest =>
          relation.copy(table = tables.computeIfAbsent(table, _.agreeingOn(newest)))
        case _ => relation
      }
    }
  }
}
