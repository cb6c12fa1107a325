package io.deltaic.spark.sql.parser

import org.apache.spark.sql.catalyst.SQLConfHelper
import org.apache.spark.sql.catalyst.analysis.{PlanWithUnresolvedIdentifier, UnresolvedRelation}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.spark.sql.analysis.ViewTarget

/**
 * Wraps the targets of a parsed statement that may be temporary views or queries of its WITH clause in a
 * [[ViewTarget]].
 *
 * @param mayBeCreated whether a view may be created before the statement runs, as in a script
 */
private[sql] final class MarkViewTargets(spark: SparkSession, mayBeCreated: Boolean)
    extends SQLConfHelper {

  /** @param queries the names in its WITH clause, which take precedence over views of the same names */
  def marked(statement: LogicalPlan, queries: Seq[String] = Nil): LogicalPlan = {
    def hasUuidPrefix(target: LogicalPlan): Boolean = mayBeView(target, queries)
    statement match {
      case delete: DeleteFromTable if hasUuidPrefix(delete.table) =>
        delete.copy(table = ViewTarget(delete.table))
      case update: UpdateTable if hasUuidPrefix(update.table) =>
        update.copy(table = ViewTarget(update.table))
      case merge: MergeIntoTable if hasUuidPrefix(merge.targetTable) =>
        merge.copy(targetTable = ViewTarget(merge.targetTable))
      case other => other
    }
  }

  private def mayBeView(target: LogicalPlan, queries: Seq[String]): Boolean = target match {
    case alias: SubqueryAlias => mayBeView(alias.child, queries)
    case named: UnresolvedRelation =>
      mayBeCreated || spark.sessionState.catalog.isTempView(named.multipartIdentifier) ||
      queries.exists(query => named.multipartIdentifier.corresponds(Seq(query))(conf.resolver))
    case _: PlanWithUnresolvedIdentifier => true
    case _ => false
  }
}
