package io.deltaic.spark.write.files

import java.util.Arrays

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types.StructType

import io.deltaic.spark.curve.{HilbertCurve, RowOrder}

/**
 * Orders the rows of a task along Hilbert's curve, buffer by buffer, without a shuffle. So the pages and row groups of a
 * file, and the files of a task that writes several, have narrow ranges of the clustering columns.
 *
 * The ranges of the grid are those of the rows in the buffer. Not thread safe.
 *
 * @param columns that the table is clustered by, by their names, outermost first
 * @param schema of the rows
 * @param write gets each row once
 * @param bufferBytes how much memory the rows take that are ordered at a time
 */
private[spark] final class ClusteringBuffer(
    columns: Seq[Seq[String]],
    schema: StructType,
    write: InternalRow => Unit,
    bufferBytes: Long = ClusteringBuffer.BufferBytes
) {
  import ClusteringBuffer._

  private val order = RowOrder(HilbertCurve, columns, 63 - OrdinalBits)
  private val prefixes = order.prefixes(schema)
  private lazy val unsafe = UnsafeProjection.create(schema)
  private val rows = mutable.ArrayBuffer.empty[UnsafeRow]
  private var bytes = 0L

  def add(row: InternalRow): Unit = {
    val copy = row match {
      case row: UnsafeRow => row.copy()
      case other => unsafe(other).copy()
    }
    rows += copy
    bytes += copy.getSizeInBytes + RowOverheadBytes
    if (bytes >= bufferBytes || rows.size == MaxRows) flush()
  }

  /** Writes the rows that are in the buffer. */
  def flush(): Unit = {
    if (rows.size <= 1) rows.foreach(write)
    else {
      val ordinals = (1L << OrdinalBits) - 1
      positions().foreach(position => write(rows((position & ordinals).toInt)))
    }
    rows.clear()
    bytes = 0L
  }

  /** The positions of all rows on the curve in ascending order, each followed by the ordinal of its row. */
  private def positions(): Array[Long] = {
    val step = (rows.size + SampleRows - 1) / SampleRows
    val sample = rows.indices.by(step).map(i => rows(i): InternalRow)
    val position =
      UnsafeProjection.create(order.by(
        sample,
        prefixes,
        numParts = 1,
        firstPart = 0
      ).position(schema))
    val positions = new Array[Long](rows.size)
    rows.indices.foreach { i =>
      positions(i) = position(rows(i)).getLong(0) << OrdinalBits | i
    }
    Arrays.sort(positions)
    positions
  }
}

private object ClusteringBuffer {

  /** About as much as a row group holds. */
  private val BufferBytes = 64L << 20

  /** Of a row in memory besides its bytes: two objects, a reference and a position. */
  private val RowOverheadBytes = 80L

  /** Of the ordinal of a row in the buffer. */
  private val OrdinalBits = 22
  private val MaxRows = 1 << OrdinalBits

  /** The ranges of a grid are found by about so many rows. */
  private val SampleRows = 10000
}
