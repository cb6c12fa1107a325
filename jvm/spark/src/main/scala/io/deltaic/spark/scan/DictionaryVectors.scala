package io.deltaic.spark.scan

import org.apache.parquet.column.Dictionary
import org.apache.spark.sql.deltaic.DictionaryShims
import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.UTF8String

/**
 * A column of strings that Spark's reader fills, with one object for each entry of the file's
 * dictionary, where Spark makes one for each row. Four fields of these objects are volatile: to make
 * one takes longer than all else that reading a short string does.
 */
private[scan] final class StringVector(column: WritableColumnVector, dataType: DataType)
    extends ComputedVector(dataType) {

  private var dictionary: Dictionary = _

  /** The entries of the dictionary that were asked for so far. */
  private var entries: Array[UTF8String] = _

  /** What the rows of the batch have in the dictionary; null if the batch holds the strings. */
  private var ids: WritableColumnVector = _

  /** To be called when the reader has filled the column anew. */
  def enterBatch(): Unit = {
    val current = DictionaryShims.dictionaryOf(column)
    if (current == null) ids = null
    else {
      if (current ne dictionary) {
        dictionary = current
        entries = new Array(current.getMaxId + 1)
      }
      ids = column.getDictionaryIds
    }
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
    val made = UTF8String.fromBytes(dictionary.decodeToBinary(id).getBytesUnsafe)
    entries(id) = made
    made
  }

  override def getBinary(row: Int): Array[Byte] = column.getBinary(row)
  override def isNullAt(row: Int): Boolean = column.isNullAt(row)
  override def hasNull: Boolean = column.hasNull
  override def numNulls: Int = column.numNulls
}
