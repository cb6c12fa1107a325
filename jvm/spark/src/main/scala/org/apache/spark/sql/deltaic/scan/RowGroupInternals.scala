package org.apache.spark.sql.deltaic.scan

import java.lang.invoke.MethodType.methodType
import java.lang.invoke.{MethodHandle, MethodHandles}
import java.util.Collections

import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.schema.MessageType
import org.apache.spark.sql.execution.datasources.parquet.{
  SpecificParquetRecordReaderBase,
  VectorizedParquetRecordReader
}

/**
 * Replaces the row-group source of Spark's vectorized reader.
 *
 * The reader opens the file itself with Hadoop's configuration, which cannot specify a
 * decompressor. So it is initialized with a footer [[withoutRowGroups]], which costs almost
 * nothing, and then [[follow follows]] a reader of the file that was opened with Deltaic's options.
 */
object RowGroupInternals {

  def withoutRowGroups(footer: ParquetMetadata): ParquetMetadata =
    new ParquetMetadata(footer.getFileMetaData, Collections.emptyList())

  /**
   * From now on `reader`, which must have been initialized before, reads `file`, and closes it. What it has read
   * so far is not closed, since both share the stream.
   */
  def follow(reader: VectorizedParquetRecordReader, file: ParquetFileReader): Unit = {
    setRowGroups.invokeWithArguments(reader, rowGroupsOf.invokeWithArguments(file))
    file.setRequestedSchema(requestedSchema.invokeWithArguments(reader).asInstanceOf[MessageType])
    setRows.invokeWithArguments(reader, Long.box(file.getFilteredRecordCount)): Unit
  }

  private val owner = classOf[SpecificParquetRecordReaderBase[_]]
  private val lookup = MethodHandles.privateLookupIn(owner, MethodHandles.lookup())

  private val rowGroupsOf: MethodHandle = lookup.findConstructor(
    nested("ParquetRowGroupReaderImpl"),
    methodType(Void.TYPE, classOf[ParquetFileReader])
  )
  private val setRowGroups: MethodHandle =
    lookup.findSetter(owner, "reader", nested("ParquetRowGroupReader"))
  private val setRows: MethodHandle =
    lookup.findSetter(owner, "totalRowCount", java.lang.Long.TYPE)
  private val requestedSchema: MethodHandle =
    lookup.findGetter(owner, "requestedSchema", classOf[MessageType])

  private def nested(name: String): Class[_] = lookup.findClass(s"${owner.getName}$$$name")
}
