package io.deltaic.spark.rowlevel

import scala.util.Using

import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.util.toPrettySQL
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.connector.write._

import io.deltaic.protocol.{AddCdcFile, AddFile}
import io.deltaic.spark.commit.reads.RecordedReads
import io.deltaic.spark.commit.{CommitFiles, OperationInfo}
import io.deltaic.spark.metrics.CommittedWrite
import io.deltaic.spark.scan.files.FullyDeletedFiles
import io.deltaic.spark.util.Json
import io.deltaic.spark.write.files.IdentityHighWaterMarks
import io.deltaic.spark.write.{NewFiles, RowDeletionActions, WriteIntent, WriteTransaction}

/**
 * Collects the reports of the tasks and commits them.
 *
 * @param whole files all of whose rows are deleted, which no task reads
 */
private[spark] final class RowLevelBatchWrite(
    change: RowLevelChange,
    reads: RecordedReads,
    fullyDeleted: FullyDeletedFiles
) extends DeltaBatchWrite {

  private val startedAtMs = System.currentTimeMillis()

  private val transaction = new WriteTransaction(
    change.spark,
    change.log,
    Some(change.snapshot),
    WriteIntent(
      OperationInfo(
        change.command.toString,
        change.merge.fold(Map("predicate" -> predicateParameter))(_.parameters)
      ),
      mode = change.command.toString.toLowerCase(java.util.Locale.ROOT),
      evolved = change.merge.flatMap(_.evolved),
      copiesRows = true,
      measured = change.merge.fold(WriteIntent.nothingMeasured)(_.measured)
    )
  )

  /** Files written by the driver for this commit; on abort they are deleted with those of the tasks. */
  private var deletions: RowDeletionActions = RowDeletionActions.none
  private var images: Seq[AddFile] = Nil

  @volatile private var committed = AffectedRowCounts()

  def committedWrite: Option[CommittedWrite] = transaction.committed

  /** The rows changed by the commit. */
  def affectedRows: AffectedRowCounts = committed

  override def createBatchWriterFactory(info: PhysicalWriteInfo): DeltaWriterFactory =
    new RowLevelWriterFactory(
      transaction.dataSpec,
      VectorSettings.of(transaction).reportedBytes(info.numPartitions),
      Option.when(transaction.plan.writesChangeDataFeed && writesNewRows)(transaction.changeSpec)
    )

  private def keepsRowIds: Boolean = transaction.dataSpec.numRowTrackingColumns > 0

  /** A DELETE writes no new rows. */
  private def writesNewRows: Boolean = change.command != Command.DELETE

  override def commit(messages: Array[WriterCommitMessage]): Unit = finish(messages, Map.empty)

  override def commit(messages: Array[WriterCommitMessage], summary: WriteSummary): Unit =
    finish(messages, AffectedRowCounts.byClause(summary))

  private def finish(
      messages: Array[WriterCommitMessage],
      countsByClause: Map[String, Long]
  ): Unit = {
    val reports = RowLevelMessage.in(messages)
    val scannedAtMs = System.currentTimeMillis()
    val merged = deleteRows(reports)
    val changeFiles = reports.flatMap(_.changeFiles) ++ images
    val rows = AffectedRowCounts(
      merged.map(_.updated).sum,
      merged.map(_.deleted).sum + fullyDeleted.rows,
      reports.map(_.insertedRows).sum
    )
    val finishedAtMs = System.currentTimeMillis()
    val isVersion = transaction.commit(
      CommitFiles(
        deletions.removes,
        deletions.adds ++ reports.flatMap(_.newFiles),
        changeFiles.map(f => AddCdcFile(f.path, f.partitionValues, f.sizeBytes))
      ),
      newFiles(reports),
      change.readSet(reads),
      Map(
        "numDeletedRows" -> rows.deleted,
        "numUpdatedRows" -> rows.updated,
        "numInsertedRows" -> rows.inserted,
        "numCopiedRows" -> deletions.copiedRows,
        "numPreservedRows" -> (if (keepsRowIds) rows.updated + deletions.copiedRows else 0L),
        "numRecordedChanges" -> changeFiles.flatMap(CommitFiles.rows).sum,
        "scanTimeMs" -> (scannedAtMs - startedAtMs),
        "rewriteTimeMs" -> (finishedAtMs - scannedAtMs),
        "executionTimeMs" -> (finishedAtMs - startedAtMs)
      ) ++ countsByClause,
      IdentityHighWaterMarks.merged(
        transaction.schema.stored,
        reports.map(_.identityHighWaterMarks)
      ),
      Some(VectorSettings.rebaseSettings(transaction, deletions))
    )
    if (isVersion) committed = rows
  }

  private def deleteRows(reports: Seq[RowLevelMessage]): Seq[MergedFile] =
    Using.resource(new DeletionVectorBuilder(change, transaction)) { builder =>
      val merged = builder.merge(reports)
      deletions = builder(merged, fullyDeleted.adds)
      if (needsImages)
        images = new PreImageWriter(change, transaction).record(merged.files, fullyDeleted.adds)
      merged.files
    }

  override def abort(messages: Array[WriterCommitMessage]): Unit = {
    val reports = RowLevelMessage.in(messages)
    val written = newFiles(reports)
    transaction.abort(
      written.copy(vectorFiles = written.vectorFiles ++ RowLevelMessage.bitmapFiles(reports)),
      tasksLost = messages.contains(null)
    )
  }

  override def toString: String = s"deltaic ${change.command} on ${change.log.table}"

  /**
   * Whether change data files for old rows are required. The deletes of removed files and of deletion vectors
   * follow from the actions; with copied rows they do not (Protocol § Change Data Files).
   */
  private def needsImages: Boolean =
    transaction.plan.writesChangeDataFeed && (writesNewRows || deletions.copiedRows > 0)

  private def newFiles(reports: Seq[RowLevelMessage]): NewFiles = {
    val ofTasks = reports.flatMap(report => report.newFiles ++ report.changeFiles)
    NewFiles(ofTasks ++ deletions.newDataFiles ++ images, deletions.newVectorFiles)
  }

  /** As delta-spark records it: a JSON array with the condition, if the statement has one. */
  private def predicateParameter: String = {
    val hasCondition = change.command == Command.DELETE || !change.condition.contains(TrueLiteral)
    Json.of(change.condition.filter(_ => hasCondition).toSeq.map(toPrettySQL(_))).toString
  }
}
