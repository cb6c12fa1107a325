package io.deltaic.spark.optimize

import org.apache.spark.sql.vectorized.ColumnarBatch

import io.deltaic.spark.scan.deletionvectors.RowProbe
import io.deltaic.spark.write.files.{CopyWriter, DataWriteSpec}

/**
 * Copies the live rows of parts to new files, in tasks. Rows keep their order. Batches of the reader are
 * written without being converted to rows.
 *
 * @param columns the positions in the reader's columns of the columns of the rows to write
 */
private[optimize] final class PartWriter(
    spec: DataWriteSpec,
    reader: PartReader,
    columns: Array[Int]
) extends Serializable {

  /** @param task the number of the task, which is in the file's name */
  def write(task: Int, part: RewritePart): WrittenPart = {
    val writer = new CopyWriter(spec, task, part.partitionValues, reader.columns, columns)
    WrittenPart.by(writer) {
      val probe = reader.newProbe()
      part.splits.map(copy(_, writer, probe))
    }
  }

  /** @return the number of live rows */
  private def copy(input: InputSplit, writer: CopyWriter, probe: RowProbe): Long =
    reader.batches(input) match {
      case Some(batches) => batches.map(copyBatch(_, writer, probe)).sum
      case None => writer.writeAll(reader.rows(input, probe))
    }

  private def copyBatch(batch: ColumnarBatch, writer: CopyWriter, probe: RowProbe): Long = {
    val numRows = batch.numRows
    writer.setBatch(batch)
    if (reader.vectorColumn < 0 || numRows == 0 || batch.column(reader.vectorColumn).isNullAt(0)) {
      var i = 0
      while (i < numRows) {
        writer.writeRow(i)
        i += 1
      }
      numRows.toLong
    } else {
      val vector = batch.column(reader.vectorColumn).getUTF8String(0)
      val positions = batch.column(reader.rowIndexColumn)
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
