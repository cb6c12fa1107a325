package org.apache.spark.sql.deltaic.scan

import java.lang.invoke.{MethodHandle, MethodHandles}

import org.apache.parquet.column.{Dictionary => FileDictionary}
import org.apache.spark.sql.execution.datasources.parquet.ParquetDictionary
import org.apache.spark.sql.execution.vectorized.{Dictionary, WritableColumnVector}

/** The dictionaries whose ids Spark's vectorized reader writes into columns. */
object DictionaryInternals {

  /**
   * The dictionary of the values in a column's batch, the same object for all batches of a row group;
   * null if the batch holds the values themselves. The reader wraps it again for every batch.
   */
  def ofFile(column: WritableColumnVector): FileDictionary =
    if (!column.hasDictionary) null
    else ofColumn(column) match {
      case wrapped: ParquetDictionary =>
        (fileField.invoke(wrapped): Any).asInstanceOf[FileDictionary]
      case _ => null
    }

  /** The wrapper that returns the values of such a dictionary as those of the column. */
  def ofColumn(column: WritableColumnVector): Dictionary =
    (columnField.invoke(column): Any).asInstanceOf[Dictionary]

  private val columnField: MethodHandle =
    getter(classOf[WritableColumnVector], classOf[Dictionary])

  private val fileField: MethodHandle = getter(classOf[ParquetDictionary], classOf[FileDictionary])

  private def getter(owner: Class[_], fieldType: Class[_]): MethodHandle =
    MethodHandles
      .privateLookupIn(owner, MethodHandles.lookup())
      .findGetter(owner, "dictionary", fieldType)
      .asType(java.lang.invoke.MethodType.methodType(classOf[Object], classOf[Object]))
}
