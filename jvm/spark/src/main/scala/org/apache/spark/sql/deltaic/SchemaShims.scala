package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Column, Table, V1Table}
import org.apache.spark.sql.types.StructType

/** Conversions between the schemas of Spark's connectors and its own. */
object SchemaShims {
  def columns(schema: StructType): Array[Column] = CatalogV2Util.structTypeToV2Columns(schema)

  def schema(columns: Array[Column]): StructType = CatalogV2Util.v2ColumnsToStructType(columns)

  /** The same columns with nullability lifted at every depth. */
  def asNullable(schema: StructType): StructType = schema.asNullable

  /** What the session catalog lists under a name, if `table` is no more than that. */
  def listed(table: Table): Option[CatalogTable] = table match {
    case V1Table(catalogTable) => Some(catalogTable)
    case _ => None
  }
}
