package io.deltaic.spark.optimize

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.execution.datasources.FilePartition
import org.apache.spark.sql.types.StructType

import io.deltaic.spark.scan.deletionvectors.{RowProbe, RowProbeSource}
import io.deltaic.spark.schema.ScanColumns

/**
 * Reads the live rows of parts, in tasks.
 *
 * @param columns the columns that the readers return
 */
private[optimize] final class PartReader(
    readers: PartitionReaderFactory,
    val columns: StructType,
    probes: RowProbeSource
) extends Serializable {

  private val vectorColumn = columns.fieldNames.indexOf(ScanColumns.DeletionVector)
  private val rowIndexColumn = columns.fieldNames.indexOf(ScanColumns.RowIndex)

  /** The rows in their order. Each is valid until the next one is read. */
  def rows(part: RewritePart): Iterator[InternalRow] = {
    val probe = probes.newProbe()
    part.splits.iterator
      .flatMap(input => rowsOf(FilePartition(0, Array(input.split))))
      .filterNot(isDeleted(_, probe))
  }

  private def rowsOf(split: InputPartition): Iterator[InternalRow] =
    if (readers.supportColumnarReads(split))
      PartReader.items(readers.createColumnarReader(split)).flatMap(_.rowIterator.asScala)
    else PartReader.items(readers.createReader(split))

  private def isDeleted(row: InternalRow, probe: RowProbe): Boolean =
    vectorColumn >= 0 && !row.isNullAt(vectorColumn) &&
    probe.isDeleted(row.getUTF8String(vectorColumn), row.getLong(rowIndexColumn))
}

private object PartReader {

  /** What a reader returns; it is closed at the end, or with its task. */
  private def items[A](reader: PartitionReader[A]): Iterator[A] = {
    Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => reader.close()))
    Iterator.continually {
      val hasNext = reader.next()
      if (!hasNext) reader.close()
      hasNext
    }.takeWhile(identity).map(_ => reader.get())
  }
}
