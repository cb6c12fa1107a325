package io.deltaic.spark.catalog

import java.util.{EnumSet, Set => JSet}

import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{SupportsRowLevelOperations, TableCapability}
import org.apache.spark.sql.connector.write._

import io.deltaic.spark.write.TableWriteBuilder

/**
 * A table that a statement writes, or whose rows it changes. For it, Spark resolves the output columns of writes, and
 * rewrites DELETE, UPDATE and MERGE. A rule inserts it into a plan after the rules that must run before Spark's
 * (docs/decisions/0032).
 */
private[spark] final class TargetTable(
    spark: SparkSession,
    tableVersion: TableVersion,
    displayName: Option[String],
    entry: Option[CatalogTable]
) extends DeltaicTable(spark, tableVersion, displayName, entry)
    with SupportsRowLevelOperations {

  override def asTarget: TargetTable = this

  override def isTarget: Boolean = true

  override def capabilities(): JSet[TableCapability] = {
    val all = EnumSet.copyOf(super.capabilities())
    all.remove(TableCapability.ACCEPT_ANY_SCHEMA)
    all
  }

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    requireCanCompute()
    new TableWriteBuilder(writeTarget, info)
  }

  override def newRowLevelOperationBuilder(
      info: RowLevelOperationInfo
  ): RowLevelOperationBuilder = {
    val change = changeOf(info.command)
    () => change
  }
}
