package io.deltaic.spark.sql

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import io.deltaic.spark.scan.AnalysedColumns

/** The target of a statement with the columns that it will have; those that it has stay the same ones. */
private[sql] object EvolvedRelation {

  /** @param table takes the place of the relation's */
  def apply(relation: DataSourceV2Relation, table: Table): DataSourceV2Relation = {
    val evolved = DataSourceV2Relation.create(
      table,
      relation.catalog,
      relation.identifier,
      AnalysedColumns.without(relation.options)
    )
    val known = relation.output.map(column => column.name -> column.exprId).toMap
    evolved.copy(output = evolved.output.map { column =>
      known.get(column.name).fold(column)(column.withExprId)
    })
  }
}
