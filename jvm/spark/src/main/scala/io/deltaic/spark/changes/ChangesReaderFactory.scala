package io.deltaic.spark.changes

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.execution.datasources.FilePartition
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Files to read in one task.
 *
 * @param reader the ordinal of the reader for these files
 */
private[changes] final case class ChangesPartition(files: InputPartition, reader: Int)
    extends InputPartition {
  override def preferredLocations(): Array[String] = files.preferredLocations()
}

/**
 * Reads files of the same kind.
 *
 * @param unchangedRows the ordinal of the constant that encodes which rows of a file are part of
 *   the change; none if all rows of all files are
 */
private[changes] final case class ChangesReader(
    columns: ReorderedColumns,
    unchangedRows: Option[Int]
)

/**
 * Reads all kinds of files, each with the reader of its kind.
 *
 * @param rows finds the rows that are part of a change; files without such a row are not opened
 */
private[changes] final class ChangesReaderFactory(
    readers: IndexedSeq[ChangesReader],
    rows: ChangedRows
) extends PartitionReaderFactory {

  override def supportColumnarReads(partition: InputPartition): Boolean = {
    val part = partition.asInstanceOf[ChangesPartition]
    readers(part.reader).columns.supportColumnarReads(part.files)
  }

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] = {
    val part = partition.asInstanceOf[ChangesPartition]
    readers(part.reader).columns.createReader(filesToOpen(part))
  }

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] = {
    val part = partition.asInstanceOf[ChangesPartition]
    readers(part.reader).columns.createColumnarReader(filesToOpen(part))
  }

  /**
   * Only reading two vectors shows whether they differ. After a DELETE the old one never marks a row
   * that the new one does not.
   */
  private def filesToOpen(part: ChangesPartition): InputPartition =
    (part.files, readers(part.reader).unchangedRows) match {
      case (files: FilePartition, Some(ordinal)) =>
        files.copy(files =
          files.files.filterNot(f => rows.isEmpty(f.partitionValues.getUTF8String(ordinal)))
        )
      case (files, _) => files
    }
}
