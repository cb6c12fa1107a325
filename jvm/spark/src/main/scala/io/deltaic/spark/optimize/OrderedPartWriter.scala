package io.deltaic.spark.optimize

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.deltaic.WriteInternals
import org.apache.spark.sql.types.StructType

import io.deltaic.spark.write.files.{CopyWriter, DataWriteSpec}

/**
 * Writes the rows of parts to new files, in tasks.
 *
 * @param rows the columns of the rows; further columns may follow
 * @param columns the positions in the rows of the columns of `spec.schema`; -1 for one that files do not have
 * @param partitionValues of each part
 */
private[optimize] final class OrderedPartWriter(
    spec: DataWriteSpec,
    rows: StructType,
    columns: Array[Int],
    partitionValues: IndexedSeq[Seq[String]]
) extends Serializable {

  def write(part: Int, rowsOfPart: Iterator[InternalRow]): WrittenPart = {
    val writer = new CopyWriter(spec, part, partitionValues(part), rows, columns)
    WriteInternals.onKilled(() => writer.abort())
    try {
      var count = 0L
      rowsOfPart.foreach { row =>
        writer.write(row)
        count += 1
      }
      val (add, decodedBytes) = writer.close()
      WriteInternals.addOutputMetrics(add.fold(0L)(_.sizeBytes), count)
      WrittenPart(add, decodedBytes, Seq(count))
    } catch {
      case e: Throwable =>
        writer.abort()
        throw e
    }
  }
}
