package io.deltaic.spark.skipping

import java.util.concurrent.atomic.LongAdder

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.sql.types.{DataType, Decimal}
import org.apache.spark.unsafe.types._

import io.deltaic.spark.shim.RowOfKnownTypes

/**
 * One value for each file; null means a missing value, or a null partition value.
 */
sealed abstract private[skipping] class FileColumn {
  def isNullAt(i: Int): Boolean
  def boolean(i: Int): Boolean = long(i) != 0
  def long(i: Int): Long
  def double(i: Int): Double
  def value(i: Int): AnyRef
  def decimal(i: Int, precision: Int, scale: Int): Decimal
}

private[skipping] object FileColumn {

  /** The approximate heap bytes of a value and its reference. */
  def bytesOf(value: AnyRef): Long = value match {
    case string: UTF8String => 56L + string.numBytes
    case bytes: Array[Byte] => 16L + bytes.length
    case _ => 80L
  }
}

/**
 * A column that is filled file by file.
 *
 * The validity bitmap consists of words of 64 bits, so threads may fill a column concurrently as
 * long as no two of them write files of the same word.
 */
sealed abstract private[skipping] class MutableFileColumn(size: Int) extends FileColumn {
  private val validity = new Array[Long]((size + 63) >>> 6)

  /** The approximate heap bytes of the column. */
  def retainedBytes: Long = 8L * validity.length + valueBytes
  protected def valueBytes: Long

  final override def isNullAt(i: Int): Boolean = (validity(i >>> 6) & (1L << i)) == 0
  final def setNull(i: Int): Unit = validity(i >>> 6) &= ~(1L << i)
  final protected def setValid(i: Int): Unit = validity(i >>> 6) |= 1L << i
}

/** Whole numbers, booleans (0 or 1), days, microseconds and the unscaled values of decimals. */
final private[skipping] class LongColumn(size: Int) extends MutableFileColumn(size) {
  private val values = new Array[Long](size)

  override protected def valueBytes: Long = 8L * size

  def set(i: Int, value: Long): Unit = {
    values(i) = value
    setValid(i)
  }
  override def long(i: Int): Long = values(i)
  override def double(i: Int): Double = values(i).toDouble
  override def value(i: Int): AnyRef = Long.box(values(i))
  override def decimal(i: Int, precision: Int, scale: Int): Decimal =
    Decimal.createUnsafe(values(i), precision, scale)
}

final private[skipping] class DoubleColumn(size: Int) extends MutableFileColumn(size) {
  private val values = new Array[Double](size)

  override protected def valueBytes: Long = 8L * size

  def set(i: Int, value: Double): Unit = {
    values(i) = value
    setValid(i)
  }
  override def long(i: Int): Long = values(i).toLong
  override def double(i: Int): Double = values(i)
  override def value(i: Int): AnyRef = Double.box(values(i))
  override def decimal(i: Int, precision: Int, scale: Int): Decimal = Decimal(values(i))
}

/** Strings and decimals too wide for a long. */
final private[skipping] class ObjectColumn(size: Int) extends MutableFileColumn(size) {
  private val values = new Array[AnyRef](size)
  private val objectBytes = new LongAdder

  override protected def valueBytes: Long = 4L * size + objectBytes.sum

  def set(i: Int, value: AnyRef): Unit = {
    values(i) = value
    objectBytes.add(FileColumn.bytesOf(value))
    setValid(i)
  }
  override def long(i: Int): Long = values(i).asInstanceOf[Number].longValue
  override def double(i: Int): Double = values(i).asInstanceOf[Number].doubleValue
  override def value(i: Int): AnyRef = values(i)
  override def decimal(i: Int, precision: Int, scale: Int): Decimal =
    values(i).asInstanceOf[Decimal]
}

/**
 * Partition values; equal ones share one object. Reading a value that could not be parsed throws
 * the parser's exception.
 */
final private[skipping] class PartitionValueColumn(values: Array[AnyRef], distinct: Seq[AnyRef])
    extends FileColumn {

  val retainedBytes: Long = 4L * values.length + distinct.map(FileColumn.bytesOf).sum
  override def isNullAt(i: Int): Boolean = values(i) match {
    case null => true
    case unreadable: UnreadableValue => throw unreadable.cause
    case _ => false
  }
  override def boolean(i: Int): Boolean = values(i).asInstanceOf[java.lang.Boolean]
  override def long(i: Int): Long = values(i).asInstanceOf[Number].longValue
  override def double(i: Int): Double = values(i).asInstanceOf[Number].doubleValue
  override def value(i: Int): AnyRef = values(i)
  override def decimal(i: Int, precision: Int, scale: Int): Decimal =
    values(i).asInstanceOf[Decimal]
}

final private[skipping] case class UnreadableValue(cause: Throwable)

/**
 * A row over the columns of one file after another: set `file`, then evaluate.
 *
 * @param columnsOf the columns of each part of the files ([[FileParts]])
 */
final private[skipping] class FileRow(parts: FileParts, columnsOf: Int => Array[FileColumn])
    extends InternalRow
    with RowOfKnownTypes {
  private var part = -1
  private var columns: Array[FileColumn] = _
  private var at = 0
  private var current = -1

  def file: Int = current
  def file_=(i: Int): Unit = {
    current = i
    val ordinal = parts.ordinal(i)
    if (!parts.contains(part, ordinal)) {
      part = parts.partOf(ordinal)
      columns = columnsOf(part)
    }
    at = ordinal - parts.start(part)
  }

  override def numFields: Int = columns.length
  override def isNullAt(o: Int): Boolean = columns(o).isNullAt(at)
  override def getBoolean(o: Int): Boolean = columns(o).boolean(at)
  override def getByte(o: Int): Byte = columns(o).long(at).toByte
  override def getShort(o: Int): Short = columns(o).long(at).toShort
  override def getInt(o: Int): Int = columns(o).long(at).toInt
  override def getLong(o: Int): Long = columns(o).long(at)
  override def getFloat(o: Int): Float = columns(o).double(at).toFloat
  override def getDouble(o: Int): Double = columns(o).double(at)
  override def getDecimal(o: Int, precision: Int, scale: Int): Decimal =
    columns(o).decimal(at, precision, scale)
  override def getUTF8String(o: Int): UTF8String = columns(o).value(at).asInstanceOf[UTF8String]
  override def getBinary(o: Int): Array[Byte] = columns(o).value(at).asInstanceOf[Array[Byte]]
  override def get(o: Int, dataType: DataType): AnyRef =
    InternalRow.getAccessor(dataType)(this: SpecializedGetters, o).asInstanceOf[AnyRef]
  override def getBinaryView(o: Int): BinaryView = refuse("BinaryView")
  override def getInterval(o: Int): CalendarInterval = refuse("intervals")
  override def getVariant(o: Int): VariantVal = refuse("variants")
  override def getStruct(o: Int, numFields: Int): InternalRow = refuse("structs")
  override def getArray(o: Int): ArrayData = refuse("arrays")
  override def getMap(o: Int): MapData = refuse("maps")
  override def setNullAt(o: Int): Unit = refuse("changes")
  override def update(o: Int, value: Any): Unit = refuse("changes")
  override def copy(): InternalRow = refuse("copies")

  private def refuse(what: String): Nothing =
    throw new UnsupportedOperationException(s"A row of file statistics has no $what")
}
