package io.deltaic.spark.rowlevel

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.connector.write.WriterCommitMessage

import io.deltaic.dv.DeletionVector
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}

/**
 * The report of a task: a bitmap of deleted and of updated rows for each file it has read, and the files with
 * the new rows. A file split over several tasks has bitmaps from each.
 *
 * @param deletedRows positions of deleted rows
 * @param updatedRows positions of updated rows
 * @param changeFiles change data files with the new rows, if the task writes any
 * @param bitmapFiles files to which the task wrote its bitmaps, because they are large; they are deleted after
 *   the merge
 */
private[spark] final case class RowLevelMessage(
    deletedRows: Seq[FoundRows],
    updatedRows: Seq[FoundRows],
    newFiles: Seq[AddFile],
    changeFiles: Seq[AddFile],
    identityHighWaterMarks: Map[String, Long],
    insertedRows: Long,
    bitmapFiles: Seq[String]
) extends WriterCommitMessage

private[rowlevel] object RowLevelMessage {

  def in(messages: Array[WriterCommitMessage]): Seq[RowLevelMessage] =
    messages.toSeq.collect { case message: RowLevelMessage => message }

  def bitmapFiles(messages: Seq[RowLevelMessage]): Seq[Path] =
    messages.flatMap(_.bitmapFiles).map(new Path(_))
}

/**
 * Rows of a file that a task found.
 *
 * @param file path in the log
 */
private[spark] final case class FoundRows(file: String, rows: Bitmap)

private[spark] sealed trait Bitmap {
  def sizeBytes: Long
}

private[spark] object Bitmap {

  /** A serialized bitmap in the message. */
  final case class Inline(bytes: Array[Byte]) extends Bitmap {
    override def sizeBytes: Long = bytes.length.toLong
    def vector: DeletionVector = DeletionVector.deserialize(bytes)
  }

  /** A bitmap in a file of the deletion vector format. */
  final case class Stored(descriptor: DeletionVectorDescriptor) extends Bitmap {
    override def sizeBytes: Long = descriptor.sizeBytes.toLong
  }
}
