package io.deltaic.spark.optimize

import org.apache.spark.sql.catalyst.InternalRow
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
    WrittenPart.by(writer)(Seq(writer.writeAll(rowsOfPart)))
  }
}
