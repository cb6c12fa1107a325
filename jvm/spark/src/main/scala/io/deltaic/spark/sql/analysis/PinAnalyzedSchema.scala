package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.schema.AnalyzedColumns

/** Records the analyzed columns of relations whose tables Spark may refresh; see [[AnalyzedColumns]]. */
private[spark] object PinAnalyzedSchema extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case relation: DataSourceV2Relation if !AnalyzedColumns.areIn(relation.options) =>
      relation match {
        case ExtractV2Table(table: DeltaicTable) if table.isRefreshed =>
          val options = AnalyzedColumns.addedTo(relation.options, table.tableSchema)
          relation.copy(options = options)
        case _ => relation
      }
  }
}
