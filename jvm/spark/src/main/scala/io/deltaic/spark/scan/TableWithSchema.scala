package io.deltaic.spark.scan

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.deltaic.SchemaShims
import org.apache.spark.sql.types.StructType

/** A table that states its columns, and answers the deprecated method `schema` by them, which Spark leaves open. */
private[spark] trait TableWithSchema extends Table {
  override def schema(): StructType = SchemaShims.schema(columns)
}
