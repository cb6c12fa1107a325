package io.deltaic.dv

import java.util.Arrays

import org.roaringbitmap.{BatchIterator, RoaringBitmap}

/**
 * Iterates over the rows of a vector that is not changed in the meantime; for one thread.
 *
 * Designed for a filter in generated code that costs one comparison of longs per row that is not
 * deleted, because row indexes ascend within a split:
 *
 * {{{
 *   long next = -1;
 *   boolean kept = row < next || row != next && row < (next = cursor.seek(row));
 * }}}
 *
 * `next` is valid for every row from the argument of the last [[seek]] up to `next` itself. If rows
 * may go backwards, the caller has to call [[seek]] for each row, or again after going backwards.
 *
 * Rows are decoded in batches, so that a deleted row costs an array access, without boxing or a
 * virtual call. A seek far ahead skips containers without decoding them.
 */
final class DeletionVectorCursor private[dv] (
    keys: Array[Int],
    buckets: Array[RoaringBitmap],
    bucketCount: Int
) {
  import DeletionVectorCursor._

  /** Position of the bucket that `batches` decodes; -1 before the first one. */
  private var bucket = -1
  private var batches: BatchIterator = _

  /** The decoded rows are `rows(position until size)`, and all of them belong to `bucket`. */
  private val lows = new Array[Int](BatchRows)
  private val rows = new Array[Long](BatchRows)
  private var size = 0
  private var position = 0

  /** No row in `[from, next)` is deleted, and `next` is, if it is not [[End]]. */
  private var from = 0L
  private var next = -1L

  /**
   * The first deleted row that is not before `row`, or [[DeletionVectorCursor.End]]. Fastest when
   * rows ascend from call to call.
   */
  def seek(row: Long): Long = {
    if (row > next) {
      position += 1
      if (position < size && rows(position) >= row) next = rows(position)
      else advance(row)
      from = row
    } else if (row < from) {
      restart()
      advance(row)
      from = row
    }
    next
  }

  private def restart(): Unit = {
    bucket = -1
    batches = null
    size = 0
    position = 0
  }

  /** Moves on to the first row not before `row`: in the batch, in the bucket, in a later one. */
  private def advance(row: Long): Unit =
    if (size > 0 && rows(size - 1) >= row) {
      val found = Arrays.binarySearch(rows, math.min(position, size), size, row)
      position = if (found >= 0) found else -found - 1
      next = rows(position)
    } else {
      size = 0
      while (size == 0 && openBucket(row)) decode(row)
      position = 0
      next = if (size > 0) rows(0) else End
    }

  /** Moves `bucket` to the next one that may have rows from `row` on; false if none is left. */
  private def openBucket(row: Long): Boolean = {
    val key = math.max(0L, row) >>> 32
    while (
      bucket < bucketCount &&
      (bucket < 0 || keys(bucket) < key || batches == null || !batches.hasNext)
    ) {
      bucket += 1
      batches = null
      if (bucket < bucketCount && keys(bucket) >= key) batches = buckets(bucket).getBatchIterator
    }
    bucket < bucketCount
  }

  private def decode(row: Long): Unit = {
    val base = keys(bucket).toLong << 32
    if (row > base) batches.advanceIfNeeded(row.toInt)
    size = if (batches.hasNext) batches.nextBatch(lows) else 0
    var i = 0
    while (i < size) {
      rows(i) = base | (lows(i) & 0xffffffffL)
      i += 1
    }
    dropBefore(row)
  }

  /** `advanceIfNeeded` moves to the right container, but not always to the right row in it. */
  private def dropBefore(row: Long): Unit =
    if (size > 0 && rows(size - 1) < row) {
      size = 0
    } else if (size > 0 && rows(0) < row) {
      val found = Arrays.binarySearch(rows, 0, size, row)
      val first = if (found >= 0) found else -found - 1
      System.arraycopy(rows, first, rows, 0, size - first)
      size -= first
    }
}

object DeletionVectorCursor {

  /** What [[DeletionVectorCursor.seek]] returns when no deleted row is left; never a row index. */
  val End: Long = Long.MaxValue

  private val BatchRows = 256
}
