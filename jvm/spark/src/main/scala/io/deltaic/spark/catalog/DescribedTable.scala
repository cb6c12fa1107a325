package io.deltaic.spark.catalog

import java.util.{Map => JMap, Set => JSet}

import org.apache.spark.sql.connector.catalog.{Column, SupportsRead, TableCapability}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.spark.util.TableWithSchema

/**
 * A table for `DESCRIBE EXTENDED`: without metadata columns, since Spark would also list those that only our
 * own plans use.
 */
private[spark] final class DescribedTable(table: DeltaicTable)
    extends TableWithSchema
    with SupportsRead {
  override def name(): String = table.name()
  override def columns(): Array[Column] = table.columns()
  override def partitioning(): Array[Transform] = table.partitioning()
  override def properties(): JMap[String, String] = table.properties()
  override def capabilities(): JSet[TableCapability] = table.capabilities()
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    table.newScanBuilder(options)
}
