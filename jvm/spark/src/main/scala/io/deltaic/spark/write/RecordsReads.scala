package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.expressions.{DynamicPruning, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.connector.write.Write
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.scan.{MetadataOnlyScan, TableScan}

/**
 * What a query reads of the table that it writes to.
 *
 * @param rowsAlone whether the change of a row depends on no other row of
 *   the table, except for those in other scans, such as subqueries
 * @param matches the rows of the table that match a join of the statement
 */
private[spark] final case class RecordedReads(
    scans: Seq[TableScan],
    rowsAlone: Boolean,
    matches: Option[MergeReadPredicate] = None
)

private[spark] object RecordedReads {
  val none: RecordedReads = RecordedReads(Nil, rowsAlone = false)

  /** The reads of a condition on single rows. */
  val ofRowsAlone: RecordedReads = RecordedReads(Nil, rowsAlone = true)
}

/** A write that records what its query reads of the table that it writes to. */
private[spark] trait RecordsReads {
  private var reads = RecordedReads.none

  /** The table that is written. */
  def log: DeltaLog

  /** The version that the write is based on; -1 if there is none. */
  def readVersion: Long

  /** The recorded reads, without scans of older versions, which never change. */
  final def recorded: RecordedReads = synchronized(reads)

  private[write] final def record(all: RecordedReads): Unit = synchronized {
    reads =
      all.copy(scans = all.scans.filter(s => s.table == log.table && s.version >= readVersion))
  }
}

/**
 * Records in a write what its query reads, including subqueries: `INSERT INTO t SELECT ... FROM t`, or an
 * insert-only MERGE, which is an append, may conflict with concurrent commits.
 *
 * It is a planner strategy that plans nothing. Only at this point do all scans have their filters, and only
 * the planner sees the write and its query together.
 */
private[spark] object RecordReads extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = {
    plan match {
      case command: V2WriteCommand =>
        val query = command.query
        writeOf(command).foreach(
          _.record(RecordedReads(
            scans(query),
            changesRowsAlone(query),
            MergeReadPredicate.in(command)
          ))
        )
      case _ => ()
    }
    Nil
  }

  private[write] def writeOf(command: V2WriteCommand): Option[RecordsReads] = {
    val write: Option[Write] = command match {
      case append: AppendData => append.write
      case overwrite: OverwriteByExpression => overwrite.write
      case overwrite: OverwritePartitionsDynamic => overwrite.write
      case merge: InsertOnlyMerge => merge.write
      case change: WriteDelta => change.write
      case _ => None
    }
    write.collect { case recording: RecordsReads => recording }
  }

  /**
   * True for a DELETE or UPDATE, and for a MERGE, unless it inserts source rows without a match and leaves
   * some matching rows unchanged: then such a row of the table prevents an insert.
   */
  private def changesRowsAlone(query: LogicalPlan): Boolean =
    query.collect { case merge: MergeRows => merge }.forall { merge =>
      merge.notMatchedInstructions.isEmpty ||
      merge.matchedInstructions.exists(_.condition == Literal.TrueLiteral)
    }

  /**
   * The scans whose rows affect the result. Spark evaluates the condition of an UPDATE or MERGE a second time, to
   * prune files at run time; the scans of that do not affect the result.
   */
  private def scans(query: LogicalPlan): Seq[TableScan] =
    query.transformAllExpressionsWithSubqueries { case _: DynamicPruning => Literal.TrueLiteral }
      .collectWithSubqueries { case relation: DataSourceV2ScanRelation => relation.scan }
      .collect {
        case scan: TableScan => scan
        case metadataOnly: MetadataOnlyScan => metadataOnly.replaced
      }
}
