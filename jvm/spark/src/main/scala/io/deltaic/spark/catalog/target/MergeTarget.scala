package io.deltaic.spark.catalog.target

import java.util.{EnumSet, Set => JSet}

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.connector.catalog.TableCapability._
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.commit.OperationInfo
import io.deltaic.spark.rowlevel.MergeDetails
import io.deltaic.spark.scan.files.SnapshotFiles
import io.deltaic.spark.scan.{ScanContext, TableScanBuilder}
import io.deltaic.spark.schema.{AnalyzedColumns, IdentityColumn, TableSchema}
import io.deltaic.spark.util.TableWithSchema
import io.deltaic.spark.write.{
  ComputesColumns,
  TableWriteBuilder,
  WriteIntent,
  WriteTarget,
  WriteTransaction
}

/**
 * The target of a MERGE, with details of the statement that no plan holds: its operation parameters for the
 * history, and the columns of the table after it. Existing rows are read with nulls in added columns, and as
 * the wider types of widened ones.
 *
 * It has no version: with one, Spark would reload the table, and lose these details.
 *
 * @param evolved the columns afterwards, if the statement evolves them
 * @param parameters the operation parameters for the history
 * @param measured metrics counted while the statement runs
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

  /** Planned by Python when the statement is planned; it refuses columns that cannot be added. */
  private lazy val schemaAfter: TableSchema =
    if (evolved.isEmpty) table.tableSchema
    else new WriteTransaction(table.spark, table.log, Some(table.snapshot), target.intent).schema

  private def target: WriteTarget = {
    val present = table.writeTarget
    present.copy(intent =
      WriteIntent(
        OperationInfo("MERGE", parameters),
        mode = "append",
        evolved = evolved,
        measured = measured
      )
    )
  }

  override def name(): String = table.name()

  override def location: Path = table.location

  override def columns(): Array[Column] =
    SchemaInternals.columns(evolved.getOrElse(table.tableSchema.all))

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
      val readOptions = AnalyzedColumns.without(options)
      new TableScanBuilder(
        table.spark,
        files,
        schemaAfter,
        readOptions,
        ScanContext(isChanged = true)
      )
    }

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    table.requireCanCompute()
    new TableWriteBuilder(target, info)
  }

  override def newRowLevelOperationBuilder(
      info: RowLevelOperationInfo
  ): RowLevelOperationBuilder = {
    val details = new MergeDetails(parameters, measured, evolved, () => schemaAfter)
    () => table.changeOf(info.command, Some(details))
  }
}
