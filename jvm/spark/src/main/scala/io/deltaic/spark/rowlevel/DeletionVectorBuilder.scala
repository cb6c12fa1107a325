package io.deltaic.spark.rowlevel

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, WriteInternals}

import io.deltaic.dv.DeletionVectorFileWriter
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, TableFeatures}
import io.deltaic.spark.commit.{CommitFiles, LooseBounds}
import io.deltaic.spark.write.{NewFiles, RowDeletionActions, WriteTransaction}

/**
 * Turns deleted rows into file actions.
 *
 *   - A file all of whose rows are deleted is removed.
 *   - On a table with deletion vectors, a file with remaining rows gets a new vector: the old one's rows
 *     and the newly deleted ones.
 *     A heavily deleted file is rewritten, so that vectors do not stay for ever.
 *   - On any other table the same vector is built, and the file is rewritten without the rows in it. So
 *     there is one code path for changes, and copy-on-write is its last step.
 *
 * Closing it deletes the files that tasks wrote for the driver alone.
 */
private[rowlevel] final class DeletionVectorBuilder(
    change: RowLevelChange,
    transaction: WriteTransaction
) extends AutoCloseable {

  private var temporary: Seq[Path] = Nil

  /**
   * Merges the bitmaps that tasks have reported into one for each file: on the driver if they are small,
   * else in tasks, so that neither they nor the old deletion vectors have to fit into the driver's memory.
   */
  def merge(reports: Seq[RowLevelMessage]): MergedFiles = {
    temporary = RowLevelMessage.bitmapFiles(reports)
    val touched = FileWithDeletedRows.of(
      change.filesRead,
      reports.flatMap(_.deletedRows),
      reports.flatMap(_.updatedRows)
    )
    val settings = VectorSettings.of(transaction)
    val bitmapBytes = touched.iterator.map(_.bitmapBytes).sum
    val onDriver = touched.forall(_.isInline) && bitmapBytes <= settings.maxBitmapMergeBytes
    val merge = BitmapMerge(
      transaction.dataSpec,
      settings,
      writesVectors = writesDeletionVectors,
      separatesUpdates = transaction.plan.writesChangeDataFeed,
      inMemory = onDriver,
      maxInlineBytes = DeletionVectorFileWriter.maxInlineBytes(settings.maxInlineBytes, bitmapBytes)
    )
    val merged = if (onDriver) merge(touched, _ => ()) else inTasks(merge, touched)
    temporary ++= merged.temporaryFiles.map(new Path(_))
    merged
  }

  private def inTasks(merge: BitmapMerge, touched: Seq[FileWithDeletedRows]): MergedFiles =
    try
      DeletionVectorBuilder.inTasks(
        change.spark,
        transaction.jobs(s"merge the bitmaps of ${touched.size} files"),
        merge,
        FileWithDeletedRows.groups(touched, merge.settings.maxBitmapMergeBytes)
      )
    catch {
      case e: Throwable =>
        // Some tasks may have finished, and the driver does not know what they wrote.
        transaction.abort(NewFiles.none, tasksLost = true)
        throw e
    }

  /** @param fullyDeleted further files, all of whose rows are deleted */
  def apply(merged: MergedFiles, fullyDeleted: Seq[AddFile]): RowDeletionActions = {
    val deletionTimestampMs = System.currentTimeMillis()
    val vectorFiles = merged.vectorFiles.map(new Path(_))
    val kept = merged.files.flatMap(file => file.keptVector.map(withVector(file, _)))
    try {
      val sources = merged.files.flatMap(file => file.rewriteVector.map(withVector(file, _)))
      val copies = new FileRewriter(change.spark, transaction, change.snapshot).rewrite(sources)
      val removes = (fullyDeleted ++ merged.files.map(f => change.filesRead(f.path)))
        .map(_.remove(deletionTimestampMs))
      val copiedRows = copies.flatMap(CommitFiles.rows).sum
      RowDeletionActions(removes, kept ++ copies, copies, vectorFiles, copiedRows)
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

  /** The same data file with another vector. Its statistics then have loose bounds. */
  private def withVector(merged: MergedFile, vector: DeletionVectorDescriptor): AddFile = {
    val file = change.filesRead(merged.path)
    file.copy(
      deletionVector = Some(vector),
      dataChange = true,
      stats = Some(LooseBounds.of(file.stats, merged.numRecords))
    )
  }

  override def close(): Unit = {
    transaction.discard(temporary)
    temporary = Nil
  }
}

private object DeletionVectorBuilder {

  /** Outside of the class, so that tasks do not capture it. */
  def inTasks(
      spark: SparkSession,
      description: String,
      merge: BitmapMerge,
      groups: Seq[Seq[FileWithDeletedRows]]
  ): MergedFiles = MergedFiles.of(JobInternals.inExecutors(spark, description, groups) { group =>
    Iterator.single(merge(group, abort => WriteInternals.onFailedTask(abort)))
  })
}
