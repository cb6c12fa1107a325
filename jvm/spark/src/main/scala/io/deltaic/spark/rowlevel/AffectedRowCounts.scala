package io.deltaic.spark.rowlevel

import org.apache.spark.sql.connector.write.{MergeSummary, WriteSummary}

/** How many rows a statement changed. */
private[spark] final case class AffectedRowCounts(
    updated: Long = 0L,
    deleted: Long = 0L,
    inserted: Long = 0L
) {
  def affected: Long = updated + deleted + inserted
}

private[spark] object AffectedRowCounts {

  /** The number of rows that each clause of a MERGE changed; only Spark's own MERGE plan reports it. */
  def byClause(summary: WriteSummary): Map[String, Long] = summary match {
    case merge: MergeSummary =>
      val counts = Map(
        "numMatchedUpdatedRows" -> merge.numTargetRowsMatchedUpdated,
        "numMatchedDeletedRows" -> merge.numTargetRowsMatchedDeleted,
        "numNotMatchedBySourceUpdatedRows" -> merge.numTargetRowsNotMatchedBySourceUpdated,
        "numNotMatchedBySourceDeletedRows" -> merge.numTargetRowsNotMatchedBySourceDeleted
      )
      counts.filter(_._2 >= 0) // negative if Spark does not report it
    case _ => Map.empty
  }
}

/** A write that reports, after its commit, how many rows it changed. */
private[spark] trait ReportsAffectedRows {
  def affectedRows: AffectedRowCounts
}
