package org.apache.spark.sql.execution.datasources.parquet

import java.lang.invoke.{MethodHandle, MethodHandles}

import org.apache.parquet.column.page.PageReadStore
import org.apache.spark.sql.deltaic.RowPositions

/**
 * Tells which rows of its file Spark's vectorized reader has put into a batch.
 *
 * The reader has a place for a generator of row indexes, which it tells of each row group and each
 * batch; Spark's own generator hands every index through an iterator of boxed numbers into a column.
 * This one passes on where a row group starts, and no row costs anything.
 *
 * It is in Spark's package because a class that is private to it occurs in an overridden signature.
 */
private final class RowPositionHook(positions: RowPositions)
    extends ParquetRowIndexUtil.RowIndexGenerator(-1) {

  override def initFromPageReadStore(pages: PageReadStore): Unit = {
    val first = pages.getRowIndexOffset.orElseThrow(() =>
      new IllegalStateException("a row group does not know the position of its first row")
    )
    positions.enterRowGroup(first, pages.getRowIndexes.orElse(null))
  }

  override def populateRowIndex(columns: Array[ParquetColumnVector], rows: Int): Unit =
    positions.enterBatch(rows)
}

object RowPositionHook {

  /** The reader makes a generator only for a column to be filled, so ours has to be put in its place. */
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
