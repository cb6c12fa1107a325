package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.connector.write.Write
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.scan.{AnswerFromLog, TableScan}

/** A write that wants to know what its query reads of the table it writes to. */
private[spark] trait RecordsReads {
  private var recorded: Seq[TableScan] = Nil

  /** The table written to. */
  def log: DeltaLog

  /** The version that the write is based on; -1 if there is none. */
  def readVersion: Long

  /** The scans of this table in the query, those of older versions left out: they never change. */
  final def reads: Seq[TableScan] = synchronized(recorded)

  private[write] final def record(scans: Seq[TableScan]): Unit = synchronized {
    recorded = scans.filter(s => s.table == log.table && s.version >= readVersion)
  }
}

/**
 * Tells a write what its query reads, subqueries included: `INSERT INTO t SELECT ... FROM t`, or a
 * MERGE that only inserts and so is an append, depends on what others commit meanwhile. The latter is
 * told what it is, too.
 *
 * It is a planner strategy that plans nothing, because only now every scan has its filters, and only
 * the planner sees the write and its query together.
 */
private[spark] object RecordReads extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = {
    plan match {
      case command: V2WriteCommand =>
        writeOf(command).foreach { write =>
          write.record(scans(command.query))
          (command, write) match {
            case (_: InsertOnlyMerge, append: TableWrite) => append.ofMerge()
            case _ => ()
          }
        }
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

  private def scans(query: LogicalPlan): Seq[TableScan] =
    query.collectWithSubqueries { case relation: DataSourceV2ScanRelation => relation.scan }
      .collect {
        case scan: TableScan => scan
        case answer: AnswerFromLog => answer.replaced
      }
}
