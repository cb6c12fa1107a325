package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.expressions.CheckConstraint
import org.apache.spark.sql.catalyst.plans.logical.{AddCheckConstraint, AddConstraint, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.TableCatalog
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.write.ConditionResolver

/**
 * Takes `ALTER TABLE ... ADD CONSTRAINT ... CHECK` out of Spark's hands: its plan looks for rows that
 * break the condition and lets those pass for which it is null, which the protocol does not, and
 * nothing ties the version it looked at to the commit.
 *
 * {{{
 *   AddCheckConstraint check             AddConstraint check
 *   +- Filter NOT condition        =>    +- ResolvedTable t
 *      +- DataSourceV2Relation t
 * }}}
 */
private[spark] object PlanConstraints extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case add: AddCheckConstraint if add.child.resolved && add.checkConstraint.resolved =>
      tableIn(add.child).fold[LogicalPlan](add) { table =>
        requireBuiltIn(table, add.checkConstraint)
        AddConstraint(table, add.checkConstraint)
      }
  }

  /** Refused here, for Spark plans functions in Python elsewhere, and then fails. */
  private def requireBuiltIn(resolved: ResolvedTable, constraint: CheckConstraint): Unit =
    resolved.table match {
      case table: DeltaicTable =>
        new ConditionResolver(table.spark, table.log.table.toString, table.tableSchema.all)
          .requireBuiltIn(
            s"CHECK constraint ${constraint.name}",
            constraint.condition,
            constraint.child
          )
      case _ =>
    }

  private def tableIn(child: LogicalPlan): Option[ResolvedTable] = child.collectFirst {
    case DataSourceV2Relation(
          table: DeltaicTable,
          output,
          Some(catalog: TableCatalog),
          Some(identifier),
          _,
          _
        ) =>
      ResolvedTable(catalog, identifier, table, output)
  }
}
