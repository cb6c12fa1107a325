package io.deltaic.spark.rowlevel

import java.util.{EnumSet, Set => JSet}

import scala.util.Using

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{DeleteFromTable, Filter}
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.deltaic.{SchemaInternals, SessionInternals}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.AddFile
import io.deltaic.replay.Snapshot
import io.deltaic.spark.commit.reads.{ListedRows, RecordedReads}
import io.deltaic.spark.scan.files.{FullyDeletedFiles, ListedFiles}
import io.deltaic.spark.schema.{ScanColumns, TableSchema}
import io.deltaic.spark.util.TableWithSchema
import io.deltaic.spark.write.{
  DeletesRows,
  NewFiles,
  Replaced,
  RowDeletionActions,
  RowDeletionResult,
  WriteTransaction
}

/**
 * Deletes the rows that a write replaces. It is a DELETE that Spark plans as any other, except that the
 * reports of its tasks become a part of the write's commit.
 */
private[spark] object RowReplacement extends DeletesRows {

  override def apply(
      transaction: WriteTransaction,
      snapshot: Snapshot,
      replaced: Replaced,
      newRows: Seq[AddFile]
  ): RowDeletionResult = {
    val spark = transaction.spark
    val sink = new ReportSink(transaction)
    val change = new RowLevelChange(
      spark,
      transaction.log,
      snapshot,
      Command.DELETE,
      Some((_, _, fullyDeleted) => sink.withFullyDeletedFiles(fullyDeleted))
    )
    val target = relation(new ChangedTable(change))
    val condition = replaced match {
      case Replaced.Rows(condition) => over(target)(condition)
      case Replaced.Matching(condition, ofNewRows, _) =>
        val listed =
          ListedFiles(transaction.log.table, transaction.readVersion, newRows.toIndexedSeq)
        val added = relation(ListedRows.live(spark, listed, transaction.schema))
        matches(condition, ofNewRows, target, added)
      case other => throw new IllegalArgumentException(s"$other is not a condition on rows")
    }
    transaction.describing("find the rows to replace") {
      SessionInternals.run(spark, DeleteFromTable(target, condition))
    }
    Using.resource(new DeletionVectorBuilder(change, transaction)) { builder =>
      val merged = builder.merge(sink.reports)
      val files = builder(merged, sink.fullyDeleted.adds)
      RowDeletionResult(
        files.copy(changeFiles =
          changeFiles(change, transaction, merged, sink.fullyDeleted, files, newRows)
        ),
        change.readSet(RecordedReads.perRow),
        Some(merged.files.map(_.deleted).sum + sink.fullyDeleted.rows),
        Some(VectorSettings.rebaseSettings(transaction, files))
      )
    }
  }

  private def changeFiles(
      change: RowLevelChange,
      transaction: WriteTransaction,
      merged: MergedFiles,
      fullyDeleted: FullyDeletedFiles,
      files: RowDeletionActions,
      newRows: Seq[AddFile]
  ): Seq[AddFile] =
    // Copied rows would look like inserted ones (Protocol § Change Data Files).
    if (!transaction.plan.writesChangeDataFeed || files.copiedRows == 0) Nil
    else
      try new PreImageWriter(change, transaction).record(merged.files, fullyDeleted.adds, newRows)
      catch {
        case e: Throwable =>
          transaction.abort(files.newFiles(Nil), tasksLost = false)
          throw e
      }

  private def over(relation: DataSourceV2Relation)(condition: Expression): Expression = {
    val byName = columnsOf(relation)
    condition.transformUp { case column: AttributeReference => byName(column.name) }
  }

  /** Whether a new row matches a row of the table. */
  private def matches(
      condition: Expression,
      ofNewRows: AttributeSet,
      target: DataSourceV2Relation,
      added: DataSourceV2Relation
  ): Expression = {
    val (old, fresh) = (columnsOf(target), columnsOf(added))
    val where = condition.transformUp {
      case column: AttributeReference if ofNewRows.contains(column) => fresh(column.name)
      case column: AttributeReference => OuterReference(old(column.name))
    }
    val found = Filter(where, added)
    Exists(found, SubExprUtils.getOuterReferences(found))
  }

  private def columnsOf(relation: DataSourceV2Relation): Map[String, AttributeReference] =
    relation.output.map(column => column.name -> column).toMap

  private def relation(table: Table): DataSourceV2Relation =
    DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty())

  private final class ChangedTable(change: RowLevelChange)
      extends TableWithSchema
      with SupportsRead
      with SupportsRowLevelOperations
      with SupportsMetadataColumns {
    private val tableSchema = TableSchema.of(change.snapshot)

    override def name(): String = change.log.table.toString
    override def columns(): Array[Column] = SchemaInternals.columns(tableSchema.all)
    override def capabilities(): JSet[TableCapability] = EnumSet.of(TableCapability.BATCH_READ)
    override def metadataColumns(): Array[MetadataColumn] =
      ScanColumns.metadataColumns(tableSchema.rowTracking)
    override def canRenameConflictingMetadataColumns: Boolean = true
    override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
      change.newScanBuilder(options)
    override def newRowLevelOperationBuilder(
        info: RowLevelOperationInfo
    ): RowLevelOperationBuilder = () => change
  }

  /** Collects the reports of the tasks, and commits nothing. */
  private final class ReportSink(transaction: WriteTransaction) extends DeltaBatchWrite {
    @volatile var reports: Seq[RowLevelMessage] = Nil

    /** Files that are removed without being read. */
    @volatile var fullyDeleted: FullyDeletedFiles = FullyDeletedFiles.none

    def withFullyDeletedFiles(files: FullyDeletedFiles): ReportSink = {
      fullyDeleted = files
      this
    }

    override def createBatchWriterFactory(info: PhysicalWriteInfo): DeltaWriterFactory =
      new RowLevelWriterFactory(
        transaction.dataSpec,
        VectorSettings.of(transaction).reportedBytes(info.numPartitions)
      )
    override def commit(messages: Array[WriterCommitMessage]): Unit =
      reports = RowLevelMessage.in(messages)
    override def abort(messages: Array[WriterCommitMessage]): Unit = {
      val bitmapFiles = RowLevelMessage.bitmapFiles(RowLevelMessage.in(messages))
      transaction.abort(NewFiles(Nil, bitmapFiles), tasksLost = messages.contains(null))
    }
    override def toString: String = s"deltaic search for rows of ${transaction.log.table}"
  }
}
