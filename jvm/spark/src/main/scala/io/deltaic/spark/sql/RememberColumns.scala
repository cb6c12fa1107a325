package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.scan.AnalysedColumns

/** Has relations say which columns they were analysed with, where Spark may refresh their tables; see [[AnalysedColumns]]. */
private[spark] object RememberColumns extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case relation: DataSourceV2Relation if !AnalysedColumns.areIn(relation.options) =>
      relation match {
        case ExtractV2Table(table: DeltaicTable) if table.isRefreshed =>
          val options = AnalysedColumns.addedTo(relation.options, table.tableSchema)
          relation.copy(options = options)
        case _ => relation
      }
  }
}
