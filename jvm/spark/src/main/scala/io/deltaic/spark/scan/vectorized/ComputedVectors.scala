package io.deltaic.spark.scan.vectorized

import java.util.PrimitiveIterator

import org.apache.spark.sql.deltaic.RowPositions
import org.apache.spark.sql.types.{DataType, Decimal, LongType, StructType}
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String

/**
 * Columns of a batch whose values are computed on access. Rows that are not accessed cost nothing. They own no memory.
 */
private[scan] abstract class ComputedVector(dataType: DataType)
    extends ColumnVector(dataType) {
  override def close(): Unit = ()
  override def closeIfFreeable(): Unit = ()

  override def hasNull: Boolean = false
  override def numNulls: Int = 0
  override def isNullAt(row: Int): Boolean = false

  override def getBoolean(row: Int): Boolean = unsupported
  override def getByte(row: Int): Byte = unsupported
  override def getShort(row: Int): Short = unsupported
  override def getInt(row: Int): Int = unsupported
  override def getLong(row: Int): Long = unsupported
  override def getFloat(row: Int): Float = unsupported
  override def getDouble(row: Int): Double = unsupported
  override def getArray(row: Int): ColumnarArray = unsupported
  override def getMap(row: Int): ColumnarMap = unsupported
  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal = unsupported
  override def getUTF8String(row: Int): UTF8String = unsupported
  override def getBinary(row: Int): Array[Byte] = unsupported
  override def getChild(ordinal: Int): ColumnVector = unsupported

  private def unsupported: Nothing =
    throw new UnsupportedOperationException(s"a column of type ${`type`.catalogString}")
}

/**
 * Positions of a batch's rows in their file, counted from zero. They ascend by one, except where
 * the reader skips pages of a row group.
 */
private[scan] final class PositionVector extends ComputedVector(LongType) with RowPositions {

  /** Position of the first row of the row group, and of the one after the last batch. */
  private var rowGroup = 0L
  private var next = 0L

  /** Remaining row indexes of the row group, if not all of its rows are read. */
  private var remaining: PrimitiveIterator.OfLong = _

  private var first = 0L
  private var listed: Array[Long] = _

  override def enterRowGroup(start: Long, rows: PrimitiveIterator.OfLong): Unit = {
    rowGroup = start
    next = start
    remaining = rows
  }

  override def enterBatch(rows: Int): Unit =
    if (remaining == null) {
      first = next
      next += rows
      listed = null
    } else {
      listed = new Array[Long](rows)
      var i = 0
      while (i < rows) {
        listed(i) = rowGroup + remaining.nextLong()
        i += 1
      }
    }

  override def getLong(row: Int): Long = if (listed == null) first + row else listed(row)
}

/** Each position plus the same number. */
private[scan] final class OffsetVector(base: Long, positions: PositionVector)
    extends ComputedVector(LongType) {
  override def getLong(row: Int): Long = base + positions.getLong(row)
}

/** Each value of a column, or that of another column where the first one is null. */
private[scan] final class FirstNonNullVector(column: ColumnVector, default: ColumnVector)
    extends ComputedVector(LongType) {
  override def hasNull: Boolean = column.hasNull && default.hasNull
  override def numNulls: Int = column.numNulls.min(default.numNulls)
  override def isNullAt(row: Int): Boolean = column.isNullAt(row) && default.isNullAt(row)
  override def getLong(row: Int): Long =
    if (column.isNullAt(row)) default.getLong(row) else column.getLong(row)
}

/** A struct that is never null, of columns of any kind. */
private[scan] final class StructVector(struct: StructType, fields: Array[ColumnVector])
    extends ComputedVector(struct) {
  override def getChild(ordinal: Int): ColumnVector = fields(ordinal)
}
