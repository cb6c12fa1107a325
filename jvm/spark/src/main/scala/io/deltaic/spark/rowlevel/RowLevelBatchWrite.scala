package io.deltaic.spark.rowlevel

import org.apache.spark.sql.catalyst.util.toPrettySQL
import org.apache.spark.sql.connector.write._

import io.deltaic.spark.bridge.{FileChanges, Json}
import io.deltaic.spark.scan.TableScan
import io.deltaic.spark.write._

/** Collects what the tasks report and turns it into one commit. */
private[spark] final class RowLevelBatchWrite(change: RowLevelChange, reads: Seq[TableScan])
    extends DeltaBatchWrite {

  private val startedAtMs = System.currentTimeMillis()

  private val transaction = new WriteTransaction(
    change.spark,
    change.log,
    Some(change.snapshot),
    WriteIntent(
      operation = change.command.toString,
      operationParameters = Map("predicate" -> predicateParameter),
      mode = change.command.toString.toLowerCase(java.util.Locale.ROOT)
    )
  )

  /** Files written on the driver's side of the commit; they are cleaned up with the tasks' own. */
  private var rewritten: EndedFiles = EndedFiles.none

  override def createBatchWriterFactory(info: PhysicalWriteInfo): DeltaWriterFactory =
    new RowLevelWriterFactory(transaction.dataSpec)

  override def commit(messages: Array[WriterCommitMessage]): Unit = {
    val reports = RowLevelMessage.in(messages)
    val scannedAtMs = System.currentTimeMillis()
    val ended = new FileEnder(change, transaction).apply(RowLevelMessage.endedRows(reports))
    rewritten = ended
    val changes = FileChanges(ended.removes, ended.adds ++ reports.flatMap(_.newFiles))
    val finishedAtMs = System.currentTimeMillis()
    transaction.commit(
      changes,
      newFiles(reports),
      change.readSet(reads),
      Map(
        "numDeletedRows" -> reports.map(_.deletedRows).sum,
        "numUpdatedRows" -> reports.map(_.updatedRows).sum,
        "numInsertedRows" -> reports.map(_.insertedRows).sum,
        "numCopiedRows" -> ended.copiedRows,
        "scanTimeMs" -> (scannedAtMs - startedAtMs),
        "rewriteTimeMs" -> (finishedAtMs - scannedAtMs),
        "executionTimeMs" -> (finishedAtMs - startedAtMs)
      ),
      IdentityMarks.merged(transaction.schema.stored, reports.map(_.identityMarks))
    )
  }

  override def abort(messages: Array[WriterCommitMessage]): Unit =
    transaction.abort(newFiles(RowLevelMessage.in(messages)), tasksLost = messages.contains(null))

  override def toString: String = s"deltaic ${change.command} on ${change.log.table}"

  private def newFiles(reports: Seq[RowLevelMessage]): NewFiles =
    rewritten.newFiles(reports.flatMap(_.newFiles))

  /** As delta-spark records it: a JSON array of SQL expressions. */
  private def predicateParameter: String =
    Json.of(change.predicates.map(toPrettySQL(_))).toString
}
