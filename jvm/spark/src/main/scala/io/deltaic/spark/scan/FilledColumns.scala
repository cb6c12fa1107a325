package io.deltaic.spark.scan

import org.apache.parquet.column.values.dictionary.PlainValuesDictionary.PlainLongDictionary
import org.apache.parquet.column.{Dictionary => FileDictionary}
import org.apache.spark.sql.deltaic.DictionaryShims
import org.apache.spark.sql.execution.vectorized.{Dictionary, WritableColumnVector}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String

/**
 * A column that Spark's reader fills. Where the file has a dictionary, it fills in ids, and each value is
 * looked up when a row is asked for it, through objects whose classes differ from column to column. What
 * follows does that work once for a batch, or once for an entry of the dictionary.
 */
private[scan] trait FilledColumn {

  /** What the rows are asked for; the same for all batches. */
  def values: ColumnVector

  /** To be called when the reader has filled the column with so many rows. */
  def enterBatch(rows: Int): Unit

  /** To be called before the reader fills the column anew. */
  def leaveBatch(): Unit
}

private[scan] object FilledColumn {

  /** @param field the column as it is asked for */
  def of(column: ColumnVector, field: StructField): FilledColumn = (column, field.dataType) match {
    case (wide, narrow) if NarrowedDecimals.areIn(wide.dataType, narrow) =>
      new NarrowedDecimals(wide, field.name, narrow)
    case (filled: WritableColumnVector, _) =>
      filled.dataType match {
        case _: StringType => new StringVector(filled)
        case IntegerType | DateType => new IntColumn(filled)
        case LongType | TimestampType | TimestampNTZType => new LongColumn(filled)
        case DoubleType => new DoubleColumn(filled)
        case decimal: DecimalType if decimal.precision <= Decimal.MAX_INT_DIGITS =>
          new IntColumn(filled)
        case decimal: DecimalType if decimal.precision <= Decimal.MAX_LONG_DIGITS =>
          new LongColumn(filled)
        case _ => AsFilled(filled)
      }
    case (other, _) => AsFilled(other)
  }

  private final case class AsFilled(values: ColumnVector) extends FilledColumn {
    override def enterBatch(rows: Int): Unit = ()
    override def leaveBatch(): Unit = ()
  }
}

/**
 * Numbers, which replace the ids: a loop over a batch takes less time than a look-up for each row, even if not
 * every row is asked for.
 */
private[scan] abstract class NumberColumn(column: WritableColumnVector) extends FilledColumn {

  /** That of the batch; null if the reader has filled in the values. */
  private var dictionary: Dictionary = _

  final override def values: ColumnVector = column

  final override def enterBatch(rows: Int): Unit = {
    dictionary = if (column.hasDictionary) DictionaryShims.ofColumn(column) else null
    if (dictionary != null) {
      replace(column.getDictionaryIds, numbers(dictionary), rows, column.hasNull)
      column.setDictionary(null)
    }
  }

  private def numbers(dictionary: Dictionary): Dictionary =
    (column.dataType, DictionaryShims.ofFile(column)) match {
      case (_: DecimalType, longs: PlainLongDictionary) => new UnscaledDictionary(longs)
      case _ => dictionary
    }

  /**
   * Spark keeps the dictionary of the last batch, too. It only asks whether there is one, and sets that of the page,
   * or none, before a value is looked up. Where it finds none in the midst of a page, it looks up the rest of the page
   * value by value.
   */
  final override def leaveBatch(): Unit =
    if (dictionary != null) column.setDictionary(dictionary)

  /**
   * The loop is in each class, so that the compiler knows the types of what it calls.
   *
   * @param nulls whether there are any; the id of one is of an earlier batch, and may be none of this dictionary
   */
  protected def replace(
      ids: WritableColumnVector,
      dictionary: Dictionary,
      rows: Int,
      nulls: Boolean
  ): Unit
}

/** Whole numbers of 32 bits, and what is stored as such. */
private[scan] final class IntColumn(column: WritableColumnVector) extends NumberColumn(column) {

  override protected def replace(
      ids: WritableColumnVector,
      dictionary: Dictionary,
      rows: Int,
      nulls: Boolean
  ): Unit = {
    var row = 0
    while (row < rows) {
      if (!nulls || !column.isNullAt(row))
        column.putInt(row, dictionary.decodeToInt(ids.getDictId(row)))
      row += 1
    }
  }
}

/** Whole numbers of 64 bits, and what is stored as such. */
private[scan] final class LongColumn(column: WritableColumnVector) extends NumberColumn(column) {

  override protected def replace(
      ids: WritableColumnVector,
      dictionary: Dictionary,
      rows: Int,
      nulls: Boolean
  ): Unit = {
    var row = 0
    while (row < rows) {
      if (!nulls || !column.isNullAt(row))
        column.putLong(row, dictionary.decodeToLong(ids.getDictId(row)))
      row += 1
    }
  }
}

private[scan] final class DoubleColumn(column: WritableColumnVector) extends NumberColumn(column) {

  override protected def replace(
      ids: WritableColumnVector,
      dictionary: Dictionary,
      rows: Int,
      nulls: Boolean
  ): Unit = {
    var row = 0
    while (row < rows) {
      if (!nulls || !column.isNullAt(row))
        column.putDouble(row, dictionary.decodeToDouble(ids.getDictId(row)))
      row += 1
    }
  }
}

/**
 * Strings, which are made when they are first asked for: four fields of each string object are volatile, so to
 * make one takes longer than all else that reading it does.
 */
private[scan] final class StringVector(column: WritableColumnVector)
    extends ComputedVector(column.dataType)
    with FilledColumn {

  private var file: FileDictionary = _
  private var dictionary: Dictionary = _

  /** The dictionary's, as far as they were asked for. */
  private var entries: Array[UTF8String] = _

  /** What the rows of the batch have in the dictionary; null if the batch holds the values. */
  private var ids: WritableColumnVector = _

  override def values: ColumnVector = this

  override def enterBatch(rows: Int): Unit = {
    val current = DictionaryShims.ofFile(column)
    if (current == null) ids = null
    else {
      if (current ne file) {
        dictionary = DictionaryShims.ofColumn(column)
        entries = new Array(current.getMaxId + 1)
        file = current
      }
      ids = column.getDictionaryIds
    }
  }

  override def leaveBatch(): Unit = ()

  override def isNullAt(row: Int): Boolean = column.isNullAt(row)
  override def hasNull: Boolean = column.hasNull
  override def numNulls: Int = column.numNulls

  override def getUTF8String(row: Int): UTF8String =
    if (ids == null) column.getUTF8String(row)
    else if (column.isNullAt(row)) null
    else {
      val id = ids.getDictId(row)
      val known = entries(id)
      if (known != null) known else entry(id)
    }

  private def entry(id: Int): UTF8String = {
    val made = UTF8String.fromBytes(dictionary.decodeToBinary(id))
    entries(id) = made
    made
  }

  override def getBinary(row: Int): Array[Byte] = column.getBinary(row)
}

/**
 * Decimals without their point, as a dictionary of 64 bits has them. For a column of more digits than the file's,
 * Spark asks such a dictionary for 32 bits, which it does not have.
 */
private[scan] final class UnscaledDictionary(file: PlainLongDictionary) extends Dictionary {
  override def decodeToInt(id: Int): Int = file.decodeToLong(id).toInt
  override def decodeToLong(id: Int): Long = file.decodeToLong(id)
  override def decodeToFloat(id: Int): Float = notDecimal
  override def decodeToDouble(id: Int): Double = notDecimal
  override def decodeToBinary(id: Int): Array[Byte] = notDecimal

  private def notDecimal: Nothing = throw new UnsupportedOperationException("not a decimal")
}

/** A column in which the reader was asked for decimals with more digits than their type has, see `ParquetSplits`. */
private[scan] final class NarrowedDecimals(column: ColumnVector, name: String, narrow: DataType)
    extends ComputedVector(narrow)
    with FilledColumn {

  private val children: Array[ColumnVector] = narrow match {
    case s: StructType => s.fields.zipWithIndex.map { case (f, i) => child(i, f.dataType) }
    case a: ArrayType => Array(child(0, a.elementType))
    case m: MapType => Array(child(0, m.keyType), child(1, m.valueType))
    case _ => Array.empty
  }

  private def child(ordinal: Int, dataType: DataType): ColumnVector = {
    val wide = column.getChild(ordinal)
    if (NarrowedDecimals.areIn(wide.dataType, dataType)) new NarrowedDecimals(wide, name, dataType)
    else wide
  }

  override def values: ColumnVector = this
  override def enterBatch(rows: Int): Unit = ()
  override def leaveBatch(): Unit = ()

  override def isNullAt(row: Int): Boolean = column.isNullAt(row)
  override def hasNull: Boolean = column.hasNull
  override def numNulls: Int = column.numNulls

  override def getChild(ordinal: Int): ColumnVector = children(ordinal)

  override def getArray(row: Int): ColumnarArray =
    if (isNullAt(row)) null
    else {
      val array = column.asInstanceOf[WritableColumnVector]
      new ColumnarArray(children(0), array.getArrayOffset(row), array.getArrayLength(row))
    }

  override def getMap(row: Int): ColumnarMap =
    if (isNullAt(row)) null
    else {
      val map = column.asInstanceOf[WritableColumnVector]
      new ColumnarMap(children(0), children(1), map.getArrayOffset(row), map.getArrayLength(row))
    }

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    if (isNullAt(row)) null
    else {
      val value = column.getDecimal(row, DecimalType.MAX_PRECISION, scale)
      if (!value.changePrecision(precision, scale))
        throw new ArithmeticException(
          s"A data file has $value in column $name, which is ${narrow.sql}."
        )
      value
    }
}

private[scan] object NarrowedDecimals {

  /** Whether decimals have other types in the one than in the other, at any depth. */
  def areIn(wide: DataType, narrow: DataType): Boolean = (wide, narrow) match {
    case (w: DecimalType, n: DecimalType) => w != n
    case (w: StructType, n: StructType) =>
      w.fields.zip(n.fields).exists { case (a, b) => areIn(a.dataType, b.dataType) }
    case (w: ArrayType, n: ArrayType) => areIn(w.elementType, n.elementType)
    case (w: MapType, n: MapType) =>
      areIn(w.keyType, n.keyType) || areIn(w.valueType, n.valueType)
    case _ => false
  }
}
