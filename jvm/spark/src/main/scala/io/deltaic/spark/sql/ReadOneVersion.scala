package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.CacheShims
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.replay.Snapshot
import io.deltaic.spark.catalog.{DeltaicTable, MergeTarget}
import io.deltaic.spark.changes.ChangesTable
import io.deltaic.spark.rowlevel.RowLevelChange
import io.deltaic.spark.write.WriteTargets

/**
 * Has what a change reads of its own table, in subqueries and its source, read the version that is changed.
 * So has the query of a write that replaces rows.
 *
 * Spark refreshes tables between the analysis of a plan and its execution, but not the target of a change or
 * a write, which is no part of what is read. What others commit in between would be seen by half of the
 * statement: a row that is greatest in the subquery, and is not there to be deleted; or a row that is
 * written again, and not replaced.
 *
 * {{{
 *   WriteDelta t, version 5                      WriteDelta t, version 5
 *   +- Filter [id = (max(id) of t, newest)] =>   +- Filter [id = (max(id) of t, version 5)]
 *      +- t, version 5                              +- t, version 5
 * }}}
 *
 * A commit that gets in between is asked whether it changes what these read, as any other is.
 *
 * Cached rows that were made of the table are put in the plan right away. They are the user's copy, but a
 * refreshed table would no longer be found to be theirs. The table itself is read, and not from the cache: the
 * check for conflicts has to know what of it was.
 */
private[spark] final case class ReadOneVersion(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case WithCTE(command: Command, _) => versionChanged(command).fold(plan)(settled(plan, _))
    case command => versionChanged(command).fold(plan)(settled(plan, _))
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

  private def settled(plan: LogicalPlan, version: Snapshot): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      new SettledReads(spark, version, CacheShims.usesCache(spark, plan)).in(plan)
    }
}

/** @param usesCache whether anything in the plan is cached, which otherwise is asked of each node */
private final class SettledReads(spark: SparkSession, version: Snapshot, usesCache: Boolean) {

  def in(plan: LogicalPlan): LogicalPlan = plan match {
    case relation @ ExtractV2Table(table: DeltaicTable) if isRead(table) && table.isRefreshed =>
      settled(relation)
    case outer @ (_: Command | _: SubqueryAlias) => below(outer)
    case part =>
      val copied = if (usesCache && reads(part)) CacheShims.cached(spark, part) else None
      copied.getOrElse(below(part))
  }

  private def below(plan: LogicalPlan): LogicalPlan = {
    val here = plan match {
      case relation: DataSourceV2Relation => settled(relation)
      case other => other.mapChildren(in)
    }
    here.transformExpressions { case subquery: SubqueryExpression =>
      subquery.withNewPlan(in(subquery.plan))
    }
  }

  private def settled(relation: DataSourceV2Relation): DataSourceV2Relation =
    relation.table match {
      case table: DeltaicTable if isRead(table) =>
        relation.copy(table = table.settledOn(version))
      case changes: ChangesTable if changes.log.table == version.table =>
        relation.copy(table = changes.until(version.version))
      case _ => relation
    }

  private def isRead(table: DeltaicTable): Boolean = table.log.table == version.table

  private def reads(plan: LogicalPlan): Boolean = plan.collectWithSubqueries {
    case ExtractV2Table(table: DeltaicTable) if isRead(table) => table
  }.nonEmpty
}
