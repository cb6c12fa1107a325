package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.toPrettySQL
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.DeltaicTable

/** Refuses changes that Spark cannot plan, and would answer with an error about its own plans. */
private[spark] object RefuseChanges extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan match {
      case WithCTE(command, _) => check(command)
      case command => check(command)
    }
    plan
  }

  private def check(command: LogicalPlan): Unit = command match {
    case DeleteFromTable(target, _) => requireNoView(target)
    case UpdateTable(target, _, _) => requireNoView(target)
    case merge: MergeIntoTable =>
      requireNoView(merge.targetTable)
      if (!onlyInserts(merge)) tableOf(merge.targetTable).foreach(requireRepeatable(merge, _))
    case _ =>
  }

  private def requireNoView(target: LogicalPlan): Unit =
    target.collectFirst { case view: View => view }
      .filter(_.exists(tableOf(_).isDefined))
      .foreach { view =>
        throw new DeltaicException(
          "DELTAIC_NAME_IS_NOT_A_TABLE",
          Map("name" -> view.desc.identifier.unquotedString, "found" -> "a view")
        )
      }

  /** One clause that inserts is planned as an append, which takes any value. */
  private def onlyInserts(merge: MergeIntoTable): Boolean =
    merge.matchedActions.isEmpty && merge.notMatchedBySourceActions.isEmpty &&
    merge.notMatchedActions.size == 1

  private def requireRepeatable(merge: MergeIntoTable, table: DeltaicTable): Unit = {
    val actions =
      merge.matchedActions ++ merge.notMatchedActions ++ merge.notMatchedBySourceActions
    val assignments = actions.flatMap {
      case update: UpdateAction => update.assignments
      case insert: InsertAction => insert.assignments
      case _ => Nil
    }
    assignments.find(set => set.value.resolved && !set.value.deterministic).foreach { set =>
      throw new DeltaicException(
        "DELTAIC_MERGE_VALUE_NOT_DETERMINISTIC",
        Map(
          "table" -> table.log.table.toString,
          "column" -> toPrettySQL(set.key),
          "expression" -> toPrettySQL(set.value)
        )
      )
    }
  }

  private def tableOf(plan: LogicalPlan): Option[DeltaicTable] =
    EliminateSubqueryAliases(plan) match {
      case ExtractV2Table(table: DeltaicTable) => Some(table)
      case _ => None
    }
}
