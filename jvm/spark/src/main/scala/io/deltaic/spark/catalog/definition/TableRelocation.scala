package io.deltaic.spark.catalog.definition

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.deltaic.SessionInternals

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.{DeltaicTable, TableLocation}
import io.deltaic.spark.schema.TableSchema
import io.deltaic.spark.util.SessionSettings

/**
 * `ALTER TABLE ... SET LOCATION`: changes the catalog's entry to the location of another Delta table with the same
 * schema. Neither table changes.
 */
private[spark] final class TableRelocation(
    spark: SparkSession,
    identifier: Identifier,
    table: DeltaicTable
) {

  def apply(location: String): Unit = {
    if (TableLocation.pathOf(identifier).isDefined)
      throw DeltaicException(
        "DELTAIC_PATH_HAS_NO_CATALOG_ENTRY",
        Map("table" -> table.log.table.toString, "operation" -> "ALTER TABLE ... SET LOCATION")
      )
    val target = TableLocation.requireExists(spark, TableLocation.log(spark, location)).latest()
    if (!bypassesCheck) requireSame(TableSchema.of(target), target.table.toString)
    val name = TableIdentifier(identifier.name, identifier.namespace.headOption)
    SessionInternals.relocate(spark, name, target.table.toUri)
  }

  private def bypassesCheck: Boolean =
    SessionSettings.isOn(spark, "alterLocation.bypassSchemaCheck")

  private def requireSame(found: TableSchema, location: String): Unit = {
    val expected = table.tableSchema
    def differs(what: String, is: Any, wanted: Any): Nothing = throw DeltaicException(
      "DELTAIC_LOCATION_DIFFERS",
      Map(
        "table" -> table.name(),
        "location" -> location,
        "what" -> what,
        "found" -> is.toString,
        "expected" -> wanted.toString
      )
    )
    if (found.all != expected.all) differs("schema", found.all.toDDL, expected.all.toDDL)
    if (found.partitionColumns != expected.partitionColumns)
      differs(
        "partitioning",
        found.partitionColumns.mkString("(", ", ", ")"),
        expected.partitionColumns.mkString("(", ", ", ")")
      )
    if (found.generated != expected.generated)
      differs("set of generated columns", found.generated, expected.generated)
  }
}
