package io.deltaic.spark.rowlevel

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.connector.write.WriterCommitMessage

import io.deltaic.dv.DeletionVector
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}

/**
 * What a task found out: which rows end, in a bitmap for each file it saw, and the files with the rows that
 * begin. A file split over several tasks has bitmaps from each.
 *
 * @param deletedRows rows that are gone
 * @param updatedRows rows that another one takes the place of
 * @param changeFiles change data files with the rows that begin, where the task writes any
 * @param bitmapFiles files that the task wrote its bitmaps to, because they are many; of no use once
 *   they are merged
 */
private[spark] final case class RowLevelMessage(
    deletedRows: Seq[FoundRows],
    updatedRows: Seq[FoundRows],
    newFiles: Seq[AddFile],
    changeFiles: Seq[AddFile],
    identityMarks: Map[String, Long],
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

  /** A serialized one. */
  final case class Carried(bytes: Array[Byte]) extends Bitmap {
    override def sizeBytes: Long = bytes.length.toLong
    def vector: DeletionVector = DeletionVector.deserialize(bytes)
  }

  /** One in a file that has the form of a file of deletion vectors. */
  final case class Stored(descriptor: DeletionVectorDescriptor) extends Bitmap {
    override def sizeBytes: Long = descriptor.sizeBytes.toLong
  }
}
