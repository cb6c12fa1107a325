package io.deltaic.spark.catalog

import java.util.{EnumSet, Set => JSet}

import org.apache.spark.sql.connector.catalog._

import io.deltaic.spark.commit.OperationInfo
import io.deltaic.spark.util.{TableWithSchema, UnsupportedOperation}
import io.deltaic.spark.write.{WriteIntent, WriteTransaction}

/**
 * The table of a TRUNCATE TABLE. It is not a [[DeltaicTable]]: Spark would also truncate that for a DELETE
 * without a condition, which is another operation.
 */
private[spark] final class TruncatableDeltaicTable(table: DeltaicTable) extends TableWithSchema
    with TruncatableTable {
  override def name(): String = table.name
  override def columns(): Array[Column] = table.columns
  override def capabilities(): JSet[TableCapability] =
    EnumSet.noneOf(classOf[TableCapability])

  override def truncateTable(): Boolean = {
    val startedAtMs = System.currentTimeMillis()
    if (!table.followsNewVersions)
      throw UnsupportedOperation(
        table.log.table.toString,
        s"TRUNCATE TABLE of the older version ${table.snapshot.version}"
      )
    val intent = WriteIntent(OperationInfo("TRUNCATE"), mode = "delete")
    new WriteTransaction(table.spark, table.log, Some(table.snapshot), intent)
      .commitWithoutRows(Map("executionTimeMs" -> (System.currentTimeMillis() - startedAtMs)))
    true
  }
}
