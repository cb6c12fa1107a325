package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, TruncateTable}
import org.apache.spark.sql.catalyst.rules.Rule

import io.deltaic.spark.catalog.{DeltaicTable, TruncatableDeltaicTable}

/** Replaces the table by one that can be truncated, for TRUNCATE TABLE alone. */
private[spark] object PlanTruncation extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case TruncateTable(resolved @ ResolvedTable(_, _, table: DeltaicTable, _)) =>
      TruncateTable(resolved.copy(table = new TruncatableDeltaicTable(table)))
  }
}
