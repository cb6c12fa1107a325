package org.apache.spark.sql.execution.datasources.parquet

import java.lang.invoke.{MethodHandle, MethodHandles}

import org.apache.parquet.column.page.PageReadStore
import org.apache.spark.sql.deltaic.RowPositions

/**
 * Reports which rows of its file Spark's vectorized reader has put into a batch.
 *
 * The reader calls a generator of row indexes for each row group and each batch. Spark's own
 * generator copies every index through an iterator of boxed numbers into a column. This one only
 * reports where a row group starts, so it costs nothing per row.
 *
 * It is in Spark's package because a class that is private to it occurs in an overridden signature.
 */
private final class RowPositionHook(positions: RowPositions)
    extends ParquetRowIndexUtil.RowIndexGenerator(-1) {

  override def initFromPageReadStore(pages: PageReadStore): Unit = {
    val first = pages.getRowIndexOffset.orElseThrow(() =>
      new IllegalStateException("a row group has no row index offset")
    )
    positions.enterRowGroup(first, pages.getRowIndexes.orElse(null))
  }

  override def populateRowIndex(columns: Array[ParquetColumnVector], rows: Int): Unit =
    positions.enterBatch(rows)
}

object RowPositionHook {

  /** The reader creates a generator only if a row-index column is requested, so this one must be set explicitly. */
  private val setGenerator: MethodHandle = {
    val reader = classOf[VectorizedParquetRecordReader]
    MethodHandles
      .privateLookupIn(reader, MethodHandles.lookup())
      .findSetter(reader, "rowIndexGenerator", classOf[ParquetRowIndexUtil.RowIndexGenerator])
  }

  /** From now on `positions` follows the reader, whose batch must have been initialized before. */
  def install(reader: VectorizedParquetRecordReader, positions: RowPositions): Unit =
    setGenerator.invokeWithArguments(reader, new RowPositionHook(positions)): Unit
}
