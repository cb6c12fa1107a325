package io.deltaic.spark.catalog

import java.util.{Map => JMap, Set => JSet}

import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}

import io.deltaic.spark.util.TableWithSchema

/**
 * A table of another provider in the extended catalog. That catalog does not support staging, so the table is
 * created first, and dropped again if the write fails.
 */
private[spark] final class NonAtomicStagedTable(table: Table, drop: () => Unit)
    extends StagedTable
    with TableWithSchema
    with SupportsWrite {
  override def name(): String = table.name
  override def columns(): Array[Column] = table.columns
  override def partitioning(): Array[Transform] = table.partitioning
  override def properties(): JMap[String, String] = table.properties
  override def capabilities(): JSet[TableCapability] = table.capabilities

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = table match {
    case writable: SupportsWrite => writable.newWriteBuilder(info)
    case _ => throw new UnsupportedOperationException(s"${table.name} cannot be written by V2")
  }

  override def commitStagedChanges(): Unit = ()
  override def abortStagedChanges(): Unit = drop()
}
