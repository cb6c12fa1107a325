package org.apache.spark.sql.deltaic

import java.util.PrimitiveIterator

/** Receives from the vectorized reader which rows of the file its batches contain. */
trait RowPositions {

  /**
   * The next batches come from the row group whose first row has this position in the file.
   *
   * @param selected the indexes of the rows that are read, relative to the row group's first one,
   *   ascending; null for all rows
   */
  def enterRowGroup(first: Long, selected: PrimitiveIterator.OfLong): Unit

  /** The current batch contains the next `rows` rows of the row group. */
  def enterBatch(rows: Int): Unit
}
