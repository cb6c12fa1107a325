package io.deltaic.spark.rowlevel

import org.apache.spark.sql.connector.write.{MergeSummary, WriteSummary}

/** How many rows a statement changed. */
private[spark] final case class ChangedRows(
    updated: Long = 0L,
    deleted: Long = 0L,
    inserted: Long = 0L
) {
  def affected: Long = updated + deleted + inserted
}

private[spark] object ChangedRows {

  /** Which clauses of a MERGE changed rows: only Spark's own plan of it tells. */
  def byClause(summary: WriteSummary): Map[String, Long] = summary match {
    case merge: MergeSummary =>
      val counts = Map(
        "numMatchedUpdatedRows" -> merge.numTargetRowsMatchedUpdated,
        "numMatchedDeletedRows" -> merge.numTargetRowsMatchedDeleted,
        "numNotMatchedBySourceUpdatedRows" -> merge.numTargetRowsNotMatchedBySourceUpdated,
        "numNotMatchedBySourceDeletedRows" -> merge.numTargetRowsNotMatchedBySourceDeleted
      )
      counts.filter(_._2 >= 0) // below zero where Spark does not know
    case _ => Map.empty
  }
}

/** A write that, once it is committed, knows how many rows it changed. */
private[spark] trait CountsChangedRows {
  def changedRows: ChangedRows
}
