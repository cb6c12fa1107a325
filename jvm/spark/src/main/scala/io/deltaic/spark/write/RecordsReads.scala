package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.expressions.{DynamicPruning, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.connector.write.Write
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.scan.{AnswerFromLog, TableScan}

/**
 * What a query reads of the table it writes to.
 *
 * @param rowsAlone whether what becomes of a row of the table that it changes depends on no other row of
 *   the table, except for those in scans of their own, such as subqueries
 * @param matches what a join of the statement looks for in the table
 */
private[spark] final case class RecordedReads(
    scans: Seq[TableScan],
    rowsAlone: Boolean,
    matches: Option[JoinMatches] = None
)

private[spark] object RecordedReads {
  val none: RecordedReads = RecordedReads(Nil, rowsAlone = false)

  /** Of a condition on single rows. */
  val ofRowsAlone: RecordedReads = RecordedReads(Nil, rowsAlone = true)
}

/** A write that wants to know what its query reads of the table it writes to. */
private[spark] trait RecordsReads {
  private var known = RecordedReads.none

  /** The table written to. */
  def log: DeltaLog

  /** The version that the write is based on; -1 if there is none. */
  def readVersion: Long

  /** What is known of the query, scans of older versions left out: they never change. */
  final def recorded: RecordedReads = synchronized(known)

  private[write] final def record(all: RecordedReads): Unit = synchronized {
    known =
      all.copy(scans = all.scans.filter(s => s.table == log.table && s.version >= readVersion))
  }
}

/**
 * Tells a write what its query reads, subqueries included: `INSERT INTO t SELECT ... FROM t`, or a
 * MERGE that only inserts and so is an append, depends on what others commit meanwhile.
 *
 * It is a planner strategy that plans nothing, because only now every scan has its filters, and only
 * the planner sees the write and its query together.
 */
private[spark] object RecordReads extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = {
    plan match {
      case command: V2WriteCommand =>
        val query = command.query
        writeOf(command).foreach(
          _.record(RecordedReads(scans(query), changesRowsAlone(query), JoinMatches.in(command)))
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
   * A DELETE or UPDATE does. So does a MERGE, unless it inserts source rows without a match and leaves
   * some matches as they are: then such a row of the table keeps another one from being inserted.
   */
  private def changesRowsAlone(query: LogicalPlan): Boolean =
    query.collect { case merge: MergeRows => merge }.forall { merge =>
      merge.notMatchedInstructions.isEmpty ||
      merge.matchedInstructions.exists(_.condition == Literal.TrueLiteral)
    }

  /**
   * Those whose rows matter. Spark has an UPDATE or MERGE look up its own condition once more, to leave
   * out files at run time; what that reads is not part of the outcome.
   */
  private def scans(query: LogicalPlan): Seq[TableScan] =
    query.transformAllExpressionsWithSubqueries { case _: DynamicPruning => Literal.TrueLiteral }
      .collectWithSubqueries { case relation: DataSourceV2ScanRelation => relation.scan }
      .collect {
        case scan: TableScan => scan
        case answer: AnswerFromLog => answer.replaced
      }
}
