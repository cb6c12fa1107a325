package io.deltaic.spark.sql.analysis.target

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.catalog.target.Evolution
import io.deltaic.spark.sql.analysis.{PendingColumns, PendingTarget, RowMetadata, ShownColumns}
import io.deltaic.spark.util.UnsupportedOperation

/**
 * Replaces the table of a DELETE, UPDATE or MERGE by one whose rows Spark can change, and marks the statement for
 * [[EvolveMergedColumns]] and [[ComputeChangedColumns]], which remove the markers.
 *
 * {{{
 *   UpdateTable [a = 1], c         =>     UpdateTable [a = 1], pending(c)
 *   +- DeltaicTable t                     +- TargetTable t
 * }}}
 *
 * Until then Spark does not rewrite the statement, also in the pass that resolves its table.
 */
private[spark] final case class ResolveRowLevelTargets(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case delete: DeleteFromTable if delete.condition.resolved =>
      changed(delete, delete.table) { table =>
        delete.copy(table = table, condition = RowMetadata.marked(table)(delete.condition))
      }
    case update: UpdateTable =>
      changed(update, update.table) { table =>
        update.copy(table = table, condition = Some(PendingColumns(update.condition)))
      }
    case merge: MergeIntoTable =>
      changed(merge, merge.targetTable) { table =>
        val evolves = merge.withSchemaEvolution || Evolution.of(spark, _ => None) != Evolution.Off
        if (evolves) ShownColumns.in(table).foreach(refuseEvolution)
        merge.copy(
          targetTable = if (evolves) PendingTarget(table) else table,
          mergeCondition = PendingColumns(Some(merge.mergeCondition))
        )
      }
  }

  private def changed(statement: LogicalPlan, target: LogicalPlan)(
      withTarget: LogicalPlan => LogicalPlan
  ): LogicalPlan = changeable(target).fold(statement) { table =>
    val after = withTarget(table)
    after.copyTagsFrom(statement)
    after
  }

  /** A column of the source may be one that the view leaves out, or one that is new. */
  private def refuseEvolution(target: ShownColumns): Unit = target.child match {
    case ExtractV2Table(table: DeltaicTable) =>
      throw UnsupportedOperation(
        table.log.table.toString,
        "MERGE with schema evolution into a temporary view of some of the table's columns"
      )
    case _ =>
  }

  private def changeable(target: LogicalPlan): Option[LogicalPlan] = target match {
    case alias: SubqueryAlias => changeable(alias.child).map(table => alias.copy(child = table))
    case shown: ShownColumns => changeable(shown.child).map(table => shown.copy(child = table))
    case relation @ ExtractV2Table(table: DeltaicTable) if !table.isTarget =>
      Some(relation.copy(table = table.asTarget))
    case _ => None
  }
}
