package io.delta.tables

import scala.annotation.varargs

import org.apache.spark.sql.DataFrame

import io.deltaic.spark.SessionTable

/** OPTIMIZE of a table; [[DeltaTable.optimize]] returns one. */
class DeltaOptimizeBuilder private[tables] (table: SessionTable) {
  private var partitionFilter = Option.empty[String]

  /** Restricts it to the partitions for which the filter is true. */
  def where(partitionFilter: String): DeltaOptimizeBuilder = {
    this.partitionFilter = Some(partitionFilter)
    this
  }

  /** Compacts files, or clusters a clustered table. */
  def executeCompaction(): DataFrame = table.optimize(partitionFilter, Nil, isFull = false)

  /** Orders the rows along a curve through the columns, so that queries on any of them skip files. */
  @varargs
  def executeZOrderBy(columns: String*): DataFrame =
    table.optimize(partitionFilter, columns, isFull = false)
}
