package io.deltaic.spark.catalog

import java.util.{EnumSet, Set => JSet}

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.connector.catalog.TableCapability._
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.deltaic.SchemaShims
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.spark.rowlevel.MergeTerms
import io.deltaic.spark.scan.{
  AnalysedColumns,
  SnapshotFiles,
  TableScanBuilder,
  TableSchema,
  TableWithSchema
}
import io.deltaic.spark.write._

/**
 * The target of a MERGE, which knows of the statement what no plan of it tells: how the history
 * describes it, and the columns that it leaves the table. Rows that are there have none of what is new,
 * and are read as the wider types that columns take.
 *
 * It has no version: Spark would load the table anew by it, and forget these.
 *
 * @param evolved the columns afterwards, where the statement adds to them
 * @param parameters what the history says of the statement
 * @param measured what has been counted while it ran
 */
private[spark] final class MergeTarget(
    val table: DeltaicTable,
    evolved: Option[StructType] = None,
    parameters: Map[String, String] = Map.empty,
    measured: () => Map[String, Long] = () => Map.empty
) extends TableWithSchema
    with SupportsRead
    with SupportsWrite
    with SupportsRowLevelOperations
    with SupportsMetadataColumns
    with ComputesColumns {

  def described(
      parameters: Map[String, String],
      measured: () => Map[String, Long]
  ): MergeTarget = new MergeTarget(table, evolved, parameters, measured)

  /** Asked of Python when the statement is planned: it refuses columns that cannot be added. */
  private lazy val schemaAfter: TableSchema =
    if (evolved.isEmpty) table.tableSchema
    else new WriteTransaction(table.spark, table.log, Some(table.snapshot), target.intent).schema

  private def target: WriteTarget = {
    val present = table.writeTarget
    present.copy(intent =
      WriteIntent("MERGE", parameters, mode = "append", evolved = evolved, measured = measured)
    )
  }

  override def name(): String = table.name()

  override def location: Path = table.location

  override def columns(): Array[Column] =
    SchemaShims.columns(evolved.getOrElse(table.tableSchema.all))

  override def partitioning(): Array[Transform] = table.partitioning()

  override def capabilities(): JSet[TableCapability] = EnumSet.of(BATCH_READ, BATCH_WRITE)

  override def metadataColumns(): Array[MetadataColumn] = table.metadataColumns()

  override def canRenameConflictingMetadataColumns: Boolean = true

  override def generatedColumns: Map[String, String] = table.generatedColumns

  override def identityColumns: Seq[IdentityColumn] = table.identityColumns

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    if (evolved.isEmpty) table.scanBuilder(options, isChanged = true)
    else {
      val files = SnapshotFiles(table.spark, table.log, table.snapshot, schemaAfter)
      val asked = AnalysedColumns.without(options)
      new TableScanBuilder(table.spark, files, schemaAfter, asked, isChanged = true)
    }

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    table.requireCanCompute()
    new TableWriteBuilder(target, info)
  }

  override def newRowLevelOperationBuilder(
      info: RowLevelOperationInfo
  ): RowLevelOperationBuilder = {
    val terms = new MergeTerms(parameters, measured, evolved, () => schemaAfter)
    () => table.changeOf(info.command, Some(terms))
  }
}
