package io.deltaic.spark.rowlevel

import scala.util.Using

import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.util.toPrettySQL
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.connector.write._

import io.deltaic.protocol.{AddCdcFile, AddFile}
import io.deltaic.spark.bridge.{FileChanges, Json}
import io.deltaic.spark.scan.WholeFiles
import io.deltaic.spark.write._

/**
 * Collects what the tasks report and turns it into one commit.
 *
 * @param whole files all of whose rows end, which no task reads
 */
private[spark] final class RowLevelBatchWrite(
    change: RowLevelChange,
    reads: RecordedReads,
    whole: WholeFiles
) extends DeltaBatchWrite {

  private val startedAtMs = System.currentTimeMillis()

  private val transaction = new WriteTransaction(
    change.spark,
    change.log,
    Some(change.snapshot),
    WriteIntent(
      operation = change.command.toString,
      operationParameters =
        change.merge.fold(Map("predicate" -> predicateParameter))(_.parameters),
      mode = change.command.toString.toLowerCase(java.util.Locale.ROOT),
      evolved = change.merge.flatMap(_.evolved),
      movesRows = true,
      measured = change.merge.fold(WriteIntent.nothingMeasured)(_.measured)
    )
  )

  /** Files written on the driver's side of the commit; they are cleaned up with the tasks' own. */
  private var rewritten: EndedFiles = EndedFiles.none
  private var images: Seq[AddFile] = Nil

  @volatile private var committed = ChangedRows()

  /** What has been committed. */
  def changedRows: ChangedRows = committed

  override def createBatchWriterFactory(info: PhysicalWriteInfo): DeltaWriterFactory =
    new RowLevelWriterFactory(
      transaction.dataSpec,
      VectorSettings.of(transaction).reportedBytes(info.numPartitions),
      Option.when(transaction.plan.feedsChanges && changesRows)(transaction.changeSpec)
    )

  private def keepsRowIds: Boolean = transaction.dataSpec.tracked > 0

  /** A DELETE has no rows that begin. */
  private def changesRows: Boolean = change.command != Command.DELETE

  override def commit(messages: Array[WriterCommitMessage]): Unit = finish(messages, Map.empty)

  override def commit(messages: Array[WriterCommitMessage], summary: WriteSummary): Unit =
    finish(messages, ChangedRows.byClause(summary))

  private def finish(
      messages: Array[WriterCommitMessage],
      countsByClause: Map[String, Long]
  ): Unit = {
    val reports = RowLevelMessage.in(messages)
    val scannedAtMs = System.currentTimeMillis()
    val ended = end(reports)
    val changeFiles = reports.flatMap(_.changeFiles) ++ images
    val rows = ChangedRows(
      ended.map(_.updated).sum,
      ended.map(_.deleted).sum + whole.rows,
      reports.map(_.insertedRows).sum
    )
    val finishedAtMs = System.currentTimeMillis()
    val isVersion = transaction.commit(
      FileChanges(
        rewritten.removes,
        rewritten.adds ++ reports.flatMap(_.newFiles),
        changeFiles.map(f => AddCdcFile(f.path, f.partitionValues, f.sizeBytes))
      ),
      newFiles(reports),
      change.readSet(reads),
      Map(
        "numDeletedRows" -> rows.deleted,
        "numUpdatedRows" -> rows.updated,
        "numInsertedRows" -> rows.inserted,
        "numCopiedRows" -> rewritten.copiedRows,
        "numPreservedRows" -> (if (keepsRowIds) rows.updated + rewritten.copiedRows else 0L),
        "numRecordedChanges" -> changeFiles.flatMap(FileChanges.rows).sum,
        "scanTimeMs" -> (scannedAtMs - startedAtMs),
        "rewriteTimeMs" -> (finishedAtMs - scannedAtMs),
        "executionTimeMs" -> (finishedAtMs - startedAtMs)
      ) ++ countsByClause,
      IdentityMarks.merged(transaction.schema.stored, reports.map(_.identityMarks)),
      Some(VectorSettings.rowEnds(transaction, rewritten))
    )
    if (isVersion) committed = rows
  }

  private def end(reports: Seq[RowLevelMessage]): Seq[MergedFile] =
    Using.resource(new FileEnder(change, transaction)) { ender =>
      val merged = ender.merge(reports)
      rewritten = ender(merged, whole.adds)
      if (needsImages)
        images = new ImageRecorder(change, transaction).record(merged.files, whole.adds)
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
   * Whether change data files have to tell what ended. What a DELETE does to whole files and to
   * deletion vectors tells itself, rows that it copies do not (Protocol § Change Data Files).
   */
  private def needsImages: Boolean =
    transaction.plan.feedsChanges && (changesRows || rewritten.copiedRows > 0)

  private def newFiles(reports: Seq[RowLevelMessage]): NewFiles = {
    val ofTasks = reports.flatMap(report => report.newFiles ++ report.changeFiles)
    NewFiles(ofTasks ++ rewritten.newDataFiles ++ images, rewritten.newVectorFiles)
  }

  /** As delta-spark records it: a JSON array with the condition, if the statement has one. */
  private def predicateParameter: String = {
    val isStated = change.command == Command.DELETE || !change.condition.contains(TrueLiteral)
    Json.of(change.condition.filter(_ => isStated).toSeq.map(toPrettySQL(_))).toString
  }
}
