package org.apache.spark.sql.deltaic.scan

import org.apache.spark.sql.catalyst.expressions.{
  DynamicPruningSubquery,
  Expression,
  SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.internal.SQLConf

/**
 * Selects which of Spark's dynamic pruning subqueries a scan keeps.
 *
 * `PartitionPruning` copies the other side of a join into each of them, with the subqueries that it
 * has inserted there, whatever the size of the copy. Most are dropped when the query is planned,
 * because they may only reuse a broadcast and the other side is not broadcast; but each of them has
 * been planned for that. So the ones that cannot help are dropped first, and large ones are dropped
 * in any case, which bounds the plan by the number of joins.
 */
object PruningSubqueries {

  /** A subquery that reads more often than this, nested subqueries included, costs more to plan than it saves. */
  private val MaxScans = 20L

  /**
   * The decision is stored in the plan of the subquery: adaptive execution plans a query several
   * times, and the first planning determines which subqueries exist.
   */
  private val Decision = TreeNodeTag[Boolean]("deltaic_keeps_pruning_subquery")

  private val Scans = TreeNodeTag[Long]("deltaic_scans_of_subquery")

  def isKept(filter: Expression): Boolean = filter match {
    case pruning: DynamicPruningSubquery =>
      pruning.buildQuery.getTagValue(Decision).getOrElse {
        val keeps = isWorthwhile(pruning)
        pruning.buildQuery.setTagValue(Decision, keeps)
        keeps
      }
    case _ => true
  }

  private def isWorthwhile(pruning: DynamicPruningSubquery): Boolean =
    scans(pruning.buildQuery) <= MaxScans &&
    (!pruning.onlyInBroadcast || mayBeBroadcast(pruning.buildQuery))

  /** A side without joins may be broadcast because of a hint, or of its size at run time. */
  private def mayBeBroadcast(plan: LogicalPlan): Boolean =
    plan.stats.sizeInBytes <= maxBroadcastBytes || !plan.exists(_.isInstanceOf[Join])

  private def maxBroadcastBytes: Long = {
    val conf = SQLConf.get
    val adaptive = conf.getConf(SQLConf.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD).getOrElse(0L)
    conf.autoBroadcastJoinThreshold.max(adaptive)
  }

  /** Counted once for each plan: one plan may be part of many. */
  private def scans(plan: LogicalPlan): Long = plan.getTagValue(Scans).getOrElse {
    var count = 0L
    plan.foreach { node =>
      if (node.children.isEmpty) count += 1
      node.expressions.foreach(_.foreach {
        case subquery: SubqueryExpression =>
          count = (count + scans(subquery.plan)).min(Int.MaxValue)
        case _ =>
      })
    }
    plan.setTagValue(Scans, count)
    count
  }
}
