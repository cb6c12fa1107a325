package io.deltaic.spark.sql.analysis.columns

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import io.deltaic.spark.schema.AnalyzedColumns

/** The target of a statement with its evolved columns; existing columns keep their expression IDs. */
private[sql] object EvolvedRelation {

  /** @param table replaces the table of the relation */
  def apply(relation: DataSourceV2Relation, table: Table): DataSourceV2Relation = {
    val evolved = DataSourceV2Relation.create(
      table,
      relation.catalog,
      relation.identifier,
      AnalyzedColumns.without(relation.options)
    )
    val existing = relation.output.map(column => column.name -> column.exprId).toMap
    evolved.copy(output = evolved.output.map { column =>
      existing.get(column.name).fold(column)(column.withExprId)
    })
  }
}
