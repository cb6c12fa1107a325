package io.deltaic.spark.write.files

import org.apache.parquet.hadoop.ParquetOutputFormat
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.catalyst.{InternalRow, ProjectingInternalRow}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch

import io.deltaic.protocol.AddFile
import io.deltaic.spark.write.parquet.CountingOutputFile

/**
 * Writes rows of the table to one new file of a partition. The rows are not new to the table, so nothing is
 * checked. Without rows, no file is written.
 *
 * @param taskPartition the number of the task, which is in the file's name
 * @param partitionValues as the log spells them, in the order of the partition columns
 * @param read the columns of the rows
 * @param columns the positions in `read` of the columns of `spec.schema`; of those alone that are in files
 */
private[deltaic] final class CopyWriter(
    spec: DataWriteSpec,
    taskPartition: Int,
    partitionValues: Seq[String],
    read: StructType,
    columns: Array[Int]
) {
  private val stored = spec.fileOrdinals.map(columns(_))

  /** For structs with void fields, which files do not have. */
  private lazy val toStored: UnsafeProjection = UnsafeProjection.create(stored.toSeq.map { i =>
    VoidColumns.cut(BoundReference(i, read(i).dataType, nullable = true))
  })
  private val hasVoids = stored.exists(i => VoidColumns.areIn(read(i).dataType))

  /**
   * Whether rows are written as they are, since what is not stored comes last. With `parquet.validation`, Spark's own
   * writer writes them, which takes no further columns.
   */
  private val isStoredFirst =
    stored.sameElements(stored.indices) && !ParquetOutputFormat.getValidation(spec.hadoopConf)

  /** Rows without what is not stored. */
  private val storedRow =
    ProjectingInternalRow(StructType(stored.map(read(_))), stored.toIndexedSeq)

  private var file: DataFileWriter = _

  /** Outlives `file`, whose memory is free after `close`. */
  private var output: CountingOutputFile = _
  private var withoutDictionary: Set[String] = Set.empty
  private var batch: ColumnarBatch = _

  def write(row: InternalRow): Unit = {
    if (file == null) open()
    if (hasVoids) file.write(toStored(row))
    else if (isStoredFirst) file.write(row)
    else {
      storedRow.project(row)
      file.write(storedRow)
    }
  }

  /** @return the number of rows */
  def writeAll(rows: Iterator[InternalRow]): Long = {
    var count = 0L
    rows.foreach { row =>
      write(row)
      count += 1
    }
    count
  }

  /** Sets the batch of [[writeRow]]. */
  def setBatch(rows: ColumnarBatch): Unit =
    batch =
      if (hasVoids) rows
      else new ColumnarBatch(stored.map(rows.column), rows.numRows)

  def writeRow(i: Int): Unit =
    if (hasVoids) write(batch.getRow(i))
    else {
      if (file == null) open()
      file.write(batch.getRow(i))
    }

  /** @return the file, and its size before compression */
  def close(): (Option[AddFile], Long) =
    if (file == null) (None, 0L)
    else {
      val written = file.close()
      spec.dictionaryFallbacks
        .record(partitionValues, file.footer, triedAll = withoutDictionary.isEmpty)
      val decodedBytes = file.decodedBytes
      file = null
      batch = null
      storedRow.project(null)
      (Some(written.addFile.copy(dataChange = false)), decodedBytes)
    }

  /** Deletes the file, closed or not. */
  def abort(): Unit = if (output != null) output.abort()

  private def open(): Unit = {
    withoutDictionary = spec.dictionaryFallbacks.forNextFile(partitionValues)
    file = DataFileWriter.open(spec, taskPartition, partitionValues, withoutDictionary)
    output = file.output
  }
}
