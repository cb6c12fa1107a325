package io.deltaic.spark.scan.vectorized

import org.apache.parquet.column.values.dictionary.PlainValuesDictionary.PlainLongDictionary
import org.apache.parquet.column.{Dictionary => FileDictionary}
import org.apache.spark.sql.deltaic.scan.DictionaryInternals
import org.apache.spark.sql.execution.vectorized.{Dictionary, WritableColumnVector}
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.{ColumnVector, ColumnarArray, ColumnarMap}
import org.apache.spark.unsafe.types.UTF8String

/**
 * A column that Spark's reader fills. If the file has a dictionary, the reader fills in ids and
 * looks up each value on access, through objects whose classes differ from column to column. The
 * implementations look up once for a batch, or once for a dictionary entry.
 */
private[scan] trait DecodedColumn {

  /** The vector from which rows are read; the same for all batches. */
  def values: ColumnVector

  /** Called when the reader has filled the column with this many rows. */
  def enterBatch(rows: Int): Unit

  /** Called before the reader fills the column again. */
  def leaveBatch(): Unit
}

private[scan] object DecodedColumn {

  /** @param field the requested column */
  def of(column: ColumnVector, field: StructField): DecodedColumn =
    (column, field.dataType) match {
      case (wide, narrow) if DecimalDowncastVector.areIn(wide.dataType, narrow) =>
        new DecimalDowncastVector(wide, field.name, narrow)
      case (filled: WritableColumnVector, _) =>
        filled.dataType match {
          case _: StringType => new StringVector(filled)
          case IntegerType | DateType => new MaterializedIntColumn(filled)
          case LongType | TimestampType | TimestampNTZType => new MaterializedLongColumn(filled)
          case DoubleType => new MaterializedDoubleColumn(filled)
          case decimal: DecimalType if decimal.precision <= Decimal.MAX_INT_DIGITS =>
            new MaterializedIntColumn(filled)
          case decimal: DecimalType if decimal.precision <= Decimal.MAX_LONG_DIGITS =>
            new MaterializedLongColumn(filled)
          case _ => AsFilled(filled)
        }
      case (other, _) => AsFilled(other)
    }

  private final case class AsFilled(values: ColumnVector) extends DecodedColumn {
    override def enterBatch(rows: Int): Unit = ()
    override def leaveBatch(): Unit = ()
  }
}

/**
 * Numbers, which replace the ids: a loop over a batch takes less time than a look-up for each row,
 * even if not every row is accessed.
 */
private[scan] abstract class NumberColumn(column: WritableColumnVector) extends DecodedColumn {

  /** The dictionary of the batch; null if the reader has filled in the values. */
  private var dictionary: Dictionary = _

  final override def values: ColumnVector = column

  final override def enterBatch(rows: Int): Unit = {
    dictionary = if (column.hasDictionary) DictionaryInternals.ofColumn(column) else null
    if (dictionary != null) {
      replace(column.getDictionaryIds, numbers(dictionary), rows, column.hasNull)
      column.setDictionary(null)
    }
  }

  private def numbers(dictionary: Dictionary): Dictionary =
    (column.dataType, DictionaryInternals.ofFile(column)) match {
      case (_: DecimalType, longs: PlainLongDictionary) => new UnscaledDictionary(longs)
      case _ => dictionary
    }

  /**
   * Restores the dictionary of the last batch, as Spark does. The reader only checks whether one is
   * set, and sets that of the page, or none, before a value is looked up. If none is set in the
   * middle of a page, it looks up the rest of the page value by value.
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
private[scan] final class MaterializedIntColumn(column: WritableColumnVector)
    extends NumberColumn(column) {

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
private[scan] final class MaterializedLongColumn(column: WritableColumnVector)
    extends NumberColumn(column) {

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

private[scan] final class MaterializedDoubleColumn(column: WritableColumnVector)
    extends NumberColumn(column) {

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
 * Strings, created on first access: four fields of each string object are volatile, so creating one
 * costs more than the rest of reading it.
 */
private[scan] final class StringVector(column: WritableColumnVector)
    extends ComputedVector(column.dataType)
    with DecodedColumn {

  private var file: FileDictionary = _
  private var dictionary: Dictionary = _

  /** The dictionary's strings that have been accessed so far. */
  private var entries: Array[UTF8String] = _

  /** The dictionary ids of the rows of the batch; null if the batch holds the values. */
  private var ids: WritableColumnVector = _

  override def values: ColumnVector = this

  override def enterBatch(rows: Int): Unit = {
    val current = DictionaryInternals.ofFile(column)
    if (current == null) ids = null
    else {
      if (current ne file) {
        dictionary = DictionaryInternals.ofColumn(column)
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
      val existing = entries(id)
      if (existing != null) existing else entry(id)
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

/** A column for which decimals with more digits than their type were requested from the reader, see `ParquetSplits`. */
private[scan] final class DecimalDowncastVector(
    column: ColumnVector,
    name: String,
    narrow: DataType
) extends ComputedVector(narrow)
    with DecodedColumn {

  private val children: Array[ColumnVector] = narrow match {
    case s: StructType => s.fields.zipWithIndex.map { case (f, i) => child(i, f.dataType) }
    case a: ArrayType => Array(child(0, a.elementType))
    case m: MapType => Array(child(0, m.keyType), child(1, m.valueType))
    case _ => Array.empty
  }

  private def child(ordinal: Int, dataType: DataType): ColumnVector = {
    val wide = column.getChild(ordinal)
    if (DecimalDowncastVector.areIn(wide.dataType, dataType))
      new DecimalDowncastVector(wide, name, dataType)
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

private[scan] object DecimalDowncastVector {

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
