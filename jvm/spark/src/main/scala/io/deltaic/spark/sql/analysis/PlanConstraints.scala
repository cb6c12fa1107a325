package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.expressions.CheckConstraint
import org.apache.spark.sql.catalyst.plans.logical.{AddCheckConstraint, AddConstraint, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.TableCatalog
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.schema.ConditionResolver

/**
 * Replaces Spark's plan of `ALTER TABLE ... ADD CONSTRAINT ... CHECK`. It accepts rows for which
 * the condition is null, which the protocol does not, and the version that it validates
 * need not be the one that the commit is based on.
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

  /** Refuses functions of the session here, since Spark would plan Python functions separately, and then fail. */
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
