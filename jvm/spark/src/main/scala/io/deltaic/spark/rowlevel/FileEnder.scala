package io.deltaic.spark.rowlevel

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobShims, WriteShims}

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, TableFeatures}
import io.deltaic.spark.bridge.{FileChanges, WideStatistics}
import io.deltaic.spark.write.{EndedFiles, NewFiles, WriteTransaction}

/**
 * Turns ended rows into file actions.
 *
 *   - A file all of whose rows have ended is removed.
 *   - On a table with deletion vectors, a file that keeps rows gets a new vector: the old one's rows
 *     and the newly ended ones.
 *     A file that keeps few of its rows is rewritten, so that vectors do not stay for ever.
 *   - On any other table the same vector is built, and the file is rewritten through it at once. So
 *     there is one path for changes, and copy-on-write is its last step.
 *
 * What tasks wrote for the driver alone is deleted when it is closed.
 */
private[rowlevel] final class FileEnder(change: RowLevelChange, transaction: WriteTransaction)
    extends AutoCloseable {

  private var temporary: Seq[Path] = Nil

  /**
   * One bitmap for each file, made of those that tasks have found: here if they are small together,
   * else in tasks, so that neither they nor the old deletion vectors have to fit into the driver.
   */
  def merge(reports: Seq[RowLevelMessage]): MergedFiles = {
    temporary = RowLevelMessage.bitmapFiles(reports)
    val touched = TouchedFile.of(
      change.filesRead,
      reports.flatMap(_.deletedRows),
      reports.flatMap(_.updatedRows)
    )
    val settings = VectorSettings.of(transaction)
    val bitmapBytes = touched.iterator.map(_.bitmapBytes).sum
    val areFew = touched.forall(_.isCarried) && bitmapBytes <= settings.mergeBytes
    val merge = BitmapMerge(
      transaction.dataSpec,
      settings,
      keepsVectors = writesDeletionVectors,
      tellsApart = transaction.plan.feedsChanges,
      carries = areFew,
      // All of a statement's vectors or none: beside one that has to be in a file, others cost no more there.
      maxInlineBytes = if (bitmapBytes <= settings.inlineBytes) settings.inlineBytes else 0L
    )
    val merged = if (areFew) merge(touched, _ => ()) else inTasks(merge, touched)
    temporary ++= merged.temporaryFiles.map(new Path(_))
    merged
  }

  private def inTasks(merge: BitmapMerge, touched: Seq[TouchedFile]): MergedFiles =
    try
      FileEnder.inTasks(
        change.spark,
        transaction.jobs(s"merge the bitmaps of ${touched.size} files"),
        merge,
        TouchedFile.groups(touched, merge.settings.mergeBytes)
      )
    catch {
      case e: Throwable =>
        // Some tasks may have come to their end, and nobody knows what they wrote.
        transaction.abort(NewFiles.none, tasksLost = true)
        throw e
    }

  /** @param whole files of which all rows end, besides those that were merged */
  def apply(merged: MergedFiles, whole: Seq[AddFile]): EndedFiles = {
    val deletionTimestampMs = System.currentTimeMillis()
    val vectorFiles = merged.vectorFiles.map(new Path(_))
    val kept = merged.files.flatMap(file => file.keptUnder.map(withVector(file, _)))
    try {
      val sources = merged.files.flatMap(file => file.rewrittenBy.map(withVector(file, _)))
      val copies = new FileRewriter(change.spark, transaction, change.snapshot).rewrite(sources)
      val removes = (whole ++ merged.files.map(f => change.filesRead(f.path)))
        .map(_.remove(deletionTimestampMs))
      val copiedRows = copies.flatMap(FileChanges.rows).sum
      EndedFiles(removes, kept ++ copies, copies, vectorFiles, copiedRows)
    } catch {
      case e: Throwable =>
        transaction.abort(NewFiles(Nil, vectorFiles), tasksLost = false)
        throw e
    }
  }

  private lazy val writesDeletionVectors: Boolean =
    TableFeatures.isActive(
      transaction.plan.protocol,
      transaction.plan.metadata,
      "deletionVectors"
    )

  /** The same data file under another vector. Its statistics now bound more rows than are left. */
  private def withVector(merged: MergedFile, vector: DeletionVectorDescriptor): AddFile = {
    val file = change.filesRead(merged.path)
    file.copy(
      deletionVector = Some(vector),
      dataChange = true,
      stats = Some(WideStatistics.of(file.stats, merged.numRecords))
    )
  }

  override def close(): Unit = {
    transaction.discard(temporary)
    temporary = Nil
  }
}

private object FileEnder {

  /** Outside of the class, so that the tasks take nothing of it along. */
  def inTasks(
      spark: SparkSession,
      description: String,
      merge: BitmapMerge,
      groups: Seq[Seq[TouchedFile]]
  ): MergedFiles = MergedFiles.of(JobShims.inExecutors(spark, description, groups) { group =>
    Iterator.single(merge(group, abort => WriteShims.onKilled(abort)))
  })
}
