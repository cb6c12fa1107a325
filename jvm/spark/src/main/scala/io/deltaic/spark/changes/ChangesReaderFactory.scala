package io.deltaic.spark.changes

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.execution.datasources.FilePartition
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Files to read in one task.
 *
 * @param recorded whether they are change data files, which tell the kind of each change themselves
 */
private[changes] final case class ChangesPartition(files: InputPartition, recorded: Boolean)
    extends InputPartition {
  override def preferredLocations(): Array[String] = files.preferredLocations()
}

/**
 * Reads both kinds of files, each by the reader of its kind.
 *
 * @param rows what tells the rows that are part of a change, and where among the constants of a
 *   data file its argument is; files without such a row are not opened
 */
private[changes] final class ChangesReaderFactory(
    inferred: ReorderedColumns,
    recorded: ReorderedColumns,
    rows: Option[(ChangedRows, Int)]
) extends PartitionReaderFactory {

  override def supportColumnarReads(partition: InputPartition): Boolean = {
    val part = partition.asInstanceOf[ChangesPartition]
    readerOf(part).supportColumnarReads(part.files)
  }

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] = {
    val part = partition.asInstanceOf[ChangesPartition]
    readerOf(part).createReader(filesToOpen(part))
  }

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] = {
    val part = partition.asInstanceOf[ChangesPartition]
    readerOf(part).createColumnarReader(filesToOpen(part))
  }

  private def readerOf(partition: ChangesPartition): ReorderedColumns =
    if (partition.recorded) recorded else inferred

  /**
   * Only reading two vectors shows whether they differ. After a DELETE the old one never marks a row
   * that the new one does not.
   */
  private def filesToOpen(part: ChangesPartition): InputPartition = (part.files, rows) match {
    case (files: FilePartition, Some((changedRows, ordinal))) if !part.recorded =>
      files.copy(files =
        files.files.filterNot(f => changedRows.isEmpty(f.partitionValues.getUTF8String(ordinal)))
      )
    case (files, _) => files
  }
}
