package io.deltaic.spark.write

import java.util.{EnumSet, Set => JSet}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.deltaic.SchemaShims
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.spark.scan.{ListedFiles, TableScanBuilder, TableSchema}

/**
 * The live rows of exactly these files, with the columns of the schema: one that is younger than a row
 * is null in it.
 */
private[spark] final class ListedRows(spark: SparkSession, files: ListedFiles, schema: TableSchema)
    extends Table
    with SupportsRead {

  override def name(): String = files.table.toString

  /** Nullability is checked where rows enter the table, not where they move within it. */
  override def columns(): Array[Column] =
    SchemaShims.columns(SchemaShims.asNullable(schema.all))

  override def capabilities(): JSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    new TableScanBuilder(spark, files, schema, options)
}
