package io.deltaic.spark.util

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.types.StructType

/** A table that implements the deprecated method `schema`, which Spark leaves abstract, by its columns. */
private[spark] trait TableWithSchema extends Table {
  override def schema(): StructType = SchemaInternals.schema(columns)
}
