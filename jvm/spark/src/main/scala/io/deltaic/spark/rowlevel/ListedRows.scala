package io.deltaic.spark.rowlevel

import java.util.{EnumSet, Set => JSet}

import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.deltaic.SchemaShims
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.AddFile
import io.deltaic.spark.scan.{ListedFiles, TableScanBuilder}
import io.deltaic.spark.write.WriteTransaction

/**
 * The live rows of exactly these files, with the columns as the transaction leaves them: what it adds is
 * null in rows that are older.
 */
private[rowlevel] final class ListedRows(transaction: WriteTransaction, files: Seq[AddFile])
    extends Table
    with SupportsRead {
  private val tableSchema = transaction.schema

  override def name(): String = transaction.log.table.toString

  /** Nullability is checked where rows enter the table, not where they move within it. */
  override def columns(): Array[Column] =
    SchemaShims.columns(SchemaShims.asNullable(tableSchema.all))

  override def capabilities(): JSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    val listed = ListedFiles(transaction.log.table, transaction.readVersion, files.toIndexedSeq)
    new TableScanBuilder(transaction.spark, listed, tableSchema, options)
  }
}
