package io.deltaic.spark.sql.analysis

import java.util

import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.deltaic.SessionInternals
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import io.deltaic.spark.scan.files.{QuerySnapshots, ReadsNewest}

/**
 * Pins all scans of a table in a query to one version. They are planned one after the other, those of subqueries
 * first, and there may be commits in between. Spark loads a table once for each name, when it normalizes the plan, which
 * `cache()` does long before a DataFrame is executed.
 *
 * {{{
 *   Except                    Except
 *   :- t, newest at its scan  :- t, newest at the first scan
 *   +- t, newest at its scan  +- t, the same
 * }}}
 *
 * Spark normalizes the plan of each query once, as a whole, before it looks for cached data and starts to
 * optimize; later rules see subqueries separately from their query. The plans of cached data have been
 * normalized, too, so they are found. This rule loads no snapshot.
 */
private[spark] object PinQuerySnapshots extends Rule[LogicalPlan] {

  /** Cached plans are planned again as queries of their own, so snapshots of an earlier query are unpinned first. */
  override def apply(plan: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      val unpinned = agreeing(plan, None)
      SessionInternals.analyzedAs(plan, agreeing(unpinned, Some(new QuerySnapshots)))
    }

  /** A table that occurs several times in the plan remains one object, since planning compares tables very often. */
  private def agreeing(plan: LogicalPlan, newest: Option[QuerySnapshots]): LogicalPlan = {
    val tables = new util.IdentityHashMap[ReadsNewest, Table]
    plan.transformWithSubqueries { case relation: DataSourceV2Relation =>
      relation.table match {
        case table: ReadsNewest =>
          relation.copy(table = tables.computeIfAbsent(table, _.pinnedTo(newest)))
        case _ => relation
      }
    }
  }
}
