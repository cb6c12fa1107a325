package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.CacheInternals
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.replay.Snapshot
import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.catalog.target.MergeTarget
import io.deltaic.spark.changes.ChangesTable
import io.deltaic.spark.rowlevel.RowLevelChange
import io.deltaic.spark.write.WriteTargets

/**
 * Pins the reads of a change from its own table, in subqueries and its source, to the version that is changed.
 * The same for the query of a write that replaces rows.
 *
 * Spark refreshes tables between the analysis of a plan and its execution, but not the target of a change or
 * a write. Half of the statement would see a commit in between: a row that is the maximum in the subquery
 * does not exist in the target to be deleted, or a row is written again and not replaced.
 *
 * {{{
 *   WriteDelta t, version 5                      WriteDelta t, version 5
 *   +- Filter [id = (max(id) of t, newest)] =>   +- Filter [id = (max(id) of t, version 5)]
 *      +- t, version 5                              +- t, version 5
 * }}}
 *
 * A commit in between is checked for conflicts with these reads, like any other.
 *
 * Cached data of plans over the table is inserted into the plan here: Spark would no longer find it for
 * a pinned table. The table itself is not read from the cache, since the
 * conflict check needs its scans.
 */
private[spark] final case class PinStatementSnapshot(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case WithCTE(command: Command, _) => versionChanged(command).fold(plan)(pinned(plan, _))
    case command => versionChanged(command).fold(plan)(pinned(plan, _))
  }

  private def versionChanged(command: LogicalPlan): Option[Snapshot] = command match {
    case write: WriteDelta if !write.analyzed =>
      Some(write.operation).collect { case change: RowLevelChange => change.snapshot }
    case merge @ InsertOnlyMerge(ExtractV2Table(target: MergeTarget), _, _, _)
        if !merge.analyzed =>
      Some(target.table.snapshot)
    case write: V2WriteCommand if !write.analyzed =>
      write.table match {
        case ExtractV2Table(table: WriteTargets) if replacesRows(write, table) =>
          table.writeTarget.snapshot
        case _ => None
      }
    case _ => None
  }

  private def replacesRows(write: V2WriteCommand, table: WriteTargets): Boolean = write match {
    case _: OverwriteByExpression | _: OverwritePartitionsDynamic => true
    case _ => table.writeTarget.replacing.isDefined
  }

  private def pinned(plan: LogicalPlan, version: Snapshot): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      new PinnedReads(spark, version, CacheInternals.usesCache(spark, plan)).in(plan)
    }
}

/** @param usesCache whether anything in the plan is cached; if not, the cache is not searched for each node */
private final class PinnedReads(spark: SparkSession, version: Snapshot, usesCache: Boolean) {

  def in(plan: LogicalPlan): LogicalPlan = plan match {
    case relation @ ExtractV2Table(table: DeltaicTable) if isRead(table) && table.isRefreshed =>
      pinned(relation)
    case outer @ (_: Command | _: SubqueryAlias) => below(outer)
    case part =>
      val cached = if (usesCache && reads(part)) CacheInternals.cached(spark, part) else None
      cached.getOrElse(below(part))
  }

  private def below(plan: LogicalPlan): LogicalPlan = {
    val here = plan match {
      case relation: DataSourceV2Relation => pinned(relation)
      case other => other.mapChildren(in)
    }
    here.transformExpressions { case subquery: SubqueryExpression =>
      subquery.withNewPlan(in(subquery.plan))
    }
  }

  private def pinned(relation: DataSourceV2Relation): DataSourceV2Relation =
    relation.table match {
      case table: DeltaicTable if isRead(table) =>
        relation.copy(table = table.pinnedToChanged(version))
      case changes: ChangesTable if changes.log.table == version.table =>
        relation.copy(table = changes.until(version.version))
      case _ => relation
    }

  private def isRead(table: DeltaicTable): Boolean = table.log.table == version.table

  private def reads(plan: LogicalPlan): Boolean = plan.collectWithSubqueries {
    case ExtractV2Table(table: DeltaicTable) if isRead(table) => table
  }.nonEmpty
}
