package io.deltaic.spark.optimize

import scala.util.Using

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.deltaic.WriteInternals
import org.apache.spark.sql.execution.datasources.FilePartition
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch

import io.deltaic.spark.scan.deletionvectors.{RowProbe, RowProbeSource}
import io.deltaic.spark.schema.ScanColumns
import io.deltaic.spark.write.files.{CopyWriter, DataWriteSpec}

/**
 * Copies the live rows of parts to new files, in tasks. Rows keep their order. Batches of the reader are
 * written without being converted to rows.
 *
 * @param read the columns that the readers return
 * @param columns the positions in `read` of the columns of the rows to write
 */
private[optimize] final class PartWriter(
    spec: DataWriteSpec,
    readers: PartitionReaderFactory,
    read: StructType,
    columns: Array[Int],
    probes: RowProbeSource
) extends Serializable {

  private val vectorColumn = read.fieldNames.indexOf(ScanColumns.DeletionVector)
  private val rowIndexColumn = read.fieldNames.indexOf(ScanColumns.RowIndex)

  /** @param task the number of the task, which is in the file's name */
  def write(task: Int, part: RewritePart): WrittenPart = {
    val writer = new CopyWriter(spec, task, part.partitionValues, read, columns)
    WriteInternals.onKilled(() => writer.abort())
    try {
      val probe = probes.newProbe()
      val rows = part.splits.map { case InputSplit(_, split) =>
        copy(FilePartition(task, Array(split)), writer, probe)
      }
      val (add, decodedBytes) = writer.close()
      WriteInternals.addOutputMetrics(add.fold(0L)(_.sizeBytes), rows.sum)
      WrittenPart(add, decodedBytes, rows)
    } catch {
      case e: Throwable =>
        writer.abort()
        throw e
    }
  }

  /** @return the number of live rows */
  private def copy(split: InputPartition, writer: CopyWriter, probe: RowProbe): Long =
    if (readers.supportColumnarReads(split))
      Using.resource(readers.createColumnarReader(split)) { reader =>
        var rows = 0L
        while (reader.next()) rows += copyBatch(reader.get(), writer, probe)
        rows
      }
    else
      Using.resource(readers.createReader(split)) { reader =>
        var rows = 0L
        while (reader.next()) {
          val row = reader.get()
          if (!isDeleted(row, probe)) {
            writer.write(row)
            rows += 1
          }
        }
        rows
      }

  private def isDeleted(row: InternalRow, probe: RowProbe): Boolean =
    vectorColumn >= 0 && !row.isNullAt(vectorColumn) &&
    probe.isDeleted(row.getUTF8String(vectorColumn), row.getLong(rowIndexColumn))

  private def copyBatch(batch: ColumnarBatch, writer: CopyWriter, probe: RowProbe): Long = {
    val numRows = batch.numRows
    writer.enter(batch)
    if (vectorColumn < 0 || numRows == 0 || batch.column(vectorColumn).isNullAt(0)) {
      var i = 0
      while (i < numRows) {
        writer.writeRow(i)
        i += 1
      }
      numRows.toLong
    } else {
      val vector = batch.column(vectorColumn).getUTF8String(0)
      val positions = batch.column(rowIndexColumn)
      var (i, rows) = (0, 0L)
      while (i < numRows) {
        if (!probe.isDeleted(vector, positions.getLong(i))) {
          writer.writeRow(i)
          rows += 1
        }
        i += 1
      }
      rows
    }
  }
}
