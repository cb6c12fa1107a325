package io.deltaic.spark.commit.reads

import java.util.{EnumSet, Set => JSet}

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.types.{StringType, StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.spark.changes.{ChangesScanBuilder, ListedChanges}
import io.deltaic.spark.scan.TableScanBuilder
import io.deltaic.spark.scan.files.ListedFiles
import io.deltaic.spark.schema.{ScanColumns, TableSchema}
import io.deltaic.spark.util.TableWithSchema

/**
 * Rows of exactly these files, with the columns of the schema: columns added after a row was written
 * are null.
 *
 * @param stored the columns
 */
private[spark] final class ListedRows private (
    table: Path,
    stored: StructType,
    scan: CaseInsensitiveStringMap => ScanBuilder
) extends TableWithSchema
    with SupportsRead {

  override def name(): String = table.toString

  /** Nullability is checked when rows are written first, not when they are copied within the table. */
  override def columns(): Array[Column] =
    SchemaInternals.columns(SchemaInternals.asNullable(stored))

  override def capabilities(): JSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = scan(options)
}

private[spark] object ListedRows {

  /** All live rows of the files. */
  def live(spark: SparkSession, files: ListedFiles, schema: TableSchema): ListedRows =
    new ListedRows(files.table, schema.all, new TableScanBuilder(spark, files, schema, _))

  /** Path, position and row ID of all live rows of the files, of a table with row tracking. */
  def identified(spark: SparkSession, files: ListedFiles, schema: TableSchema): ListedRows = {
    val stored = StructType(Seq(
      StructField(ScanColumns.FilePath, StringType),
      ScanColumns.rowIndexField,
      ScanColumns.rowTracking(ScanColumns.TrackedRowId)
    ))
    new ListedRows(
      files.table,
      stored,
      options => {
        val builder = new TableScanBuilder(spark, files, schema, options)
        builder.pruneColumns(stored)
        builder
      }
    )
  }

  /** The rows of the files that are part of the changes. */
  def changed(spark: SparkSession, changes: ListedChanges, schema: TableSchema): ListedRows =
    new ListedRows(changes.table, schema.all, new ChangesScanBuilder(spark, changes, schema, _))
}
