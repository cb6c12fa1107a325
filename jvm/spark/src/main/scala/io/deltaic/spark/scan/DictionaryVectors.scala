package io.deltaic.spark.scan

import org.apache.parquet.column.{Dictionary => FileDictionary}
import org.apache.spark.sql.deltaic.DictionaryShims
import org.apache.spark.sql.execution.vectorized.{Dictionary, WritableColumnVector}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * A column that Spark's reader fills, whose values are made once for each entry of the file's dictionary, where Spark
 * makes one for each row: for that, it asks two other objects, whose classes differ from column to column.
 *
 * @param column as the reader fills it: with values, or with ids of a dictionary
 */
private[scan] abstract class DictionaryVector(column: WritableColumnVector, dataType: DataType)
    extends ComputedVector(dataType) {

  private var dictionary: FileDictionary = _

  /** What the rows of the batch have in the dictionary; null if the batch holds the values. */
  protected var ids: WritableColumnVector = _

  /** To be called when the reader has filled the column anew. */
  final def enterBatch(): Unit = {
    val current = DictionaryShims.ofFile(column)
    if (current == null) ids = null
    else {
      if (current ne dictionary) {
        enterDictionary(DictionaryShims.ofColumn(column), current.getMaxId + 1)
        dictionary = current
      }
      ids = column.getDictionaryIds
    }
  }

  /** The entries change, of which there are so many from now on. */
  protected def enterDictionary(dictionary: Dictionary, entries: Int): Unit

  final override def isNullAt(row: Int): Boolean = column.isNullAt(row)
  final override def hasNull: Boolean = column.hasNull
  final override def numNulls: Int = column.numNulls
}

private[scan] object DictionaryVector {

  /** The column, if it is of a type for which this pays. */
  def of(column: WritableColumnVector, dataType: DataType): Option[DictionaryVector] =
    dataType match {
      case _: StringType => Some(new StringVector(column, dataType))
      case IntegerType | DateType => Some(new IntVector(column, dataType))
      case LongType | TimestampType | TimestampNTZType => Some(new LongVector(column, dataType))
      case DoubleType => Some(new DoubleVector(column, dataType))
      case decimal: DecimalType if decimal.precision <= Decimal.MAX_INT_DIGITS =>
        Some(new IntVector(column, dataType))
      case decimal: DecimalType if decimal.precision <= Decimal.MAX_LONG_DIGITS =>
        Some(new LongVector(column, dataType))
      case _ => None
    }
}

/** Four fields of each string object are volatile: to make one takes longer than all else that reading it does. */
private[scan] final class StringVector(column: WritableColumnVector, dataType: DataType)
    extends DictionaryVector(column, dataType) {

  private var dictionary: Dictionary = _

  /** Those that were asked for so far. */
  private var entries: Array[UTF8String] = _

  override protected def enterDictionary(dictionary: Dictionary, entries: Int): Unit = {
    this.dictionary = dictionary
    this.entries = new Array(entries)
  }

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

/** Whole numbers of 32 bits, and what is stored as such. */
private[scan] final class IntVector(column: WritableColumnVector, dataType: DataType)
    extends DictionaryVector(column, dataType) {

  private var entries: Array[Int] = _

  override protected def enterDictionary(dictionary: Dictionary, entries: Int): Unit =
    this.entries = Array.tabulate(entries)(dictionary.decodeToInt)

  override def getInt(row: Int): Int =
    if (ids == null) column.getInt(row) else entries(ids.getDictId(row))

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    if (isNullAt(row)) null else Decimal.createUnsafe(getInt(row).toLong, precision, scale)
}

/** Whole numbers of 64 bits, and what is stored as such. */
private[scan] final class LongVector(column: WritableColumnVector, dataType: DataType)
    extends DictionaryVector(column, dataType) {

  private var entries: Array[Long] = _

  override protected def enterDictionary(dictionary: Dictionary, entries: Int): Unit =
    this.entries = Array.tabulate(entries)(dictionary.decodeToLong)

  override def getLong(row: Int): Long =
    if (ids == null) column.getLong(row) else entries(ids.getDictId(row))

  override def getDecimal(row: Int, precision: Int, scale: Int): Decimal =
    if (isNullAt(row)) null else Decimal.createUnsafe(getLong(row), precision, scale)
}

private[scan] final class DoubleVector(column: WritableColumnVector, dataType: DataType)
    extends DictionaryVector(column, dataType) {

  private var entries: Array[Double] = _

  override protected def enterDictionary(dictionary: Dictionary, entries: Int): Unit =
    this.entries = Array.tabulate(entries)(dictionary.decodeToDouble)

  override def getDouble(row: Int): Double =
    if (ids == null) column.getDouble(row) else entries(ids.getDictId(row))
}
