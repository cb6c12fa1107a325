package io.deltaic.spark.commit.reads

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.deltaic.BatchOfStream

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.scan.TableScan

/**
 * What a query reads of the table that it writes to.
 *
 * @param resultPerRow whether the change of a row depends on no other row of
 *   the table, except for those in other scans, such as subqueries
 * @param matches the rows of the table that match a join of the statement
 */
private[spark] final case class RecordedReads(
    scans: Seq[TableScan],
    resultPerRow: Boolean,
    matches: Option[MergeReadPredicate] = None
)

private[spark] object RecordedReads {
  val none: RecordedReads = RecordedReads(Nil, resultPerRow = false)

  /** The reads of a condition on single rows. */
  val perRow: RecordedReads = RecordedReads(Nil, resultPerRow = true)
}

/** A write that records what its query reads of the table that it writes to. */
private[spark] trait ReadRecordingWrite {
  private var reads = RecordedReads.none

  /** The table that is written. */
  def log: DeltaLog

  /** The version that the write is based on; -1 if there is none. */
  def readVersion: Long

  /** The recorded reads, without scans of older versions, which never change. */
  final def recorded: RecordedReads = synchronized(reads)

  private[spark] final def record(all: RecordedReads): Unit = synchronized {
    reads =
      all.copy(scans = all.scans.filter(s => s.table == log.table && s.version >= readVersion))
  }
}

private[spark] object ReadRecordingWrite {

  /** The write of a command, or of a batch of a stream, if it is one of ours. */
  def of(command: LogicalPlan): Option[ReadRecordingWrite] = {
    val write: Option[AnyRef] = command match {
      case append: AppendData => append.write
      case overwrite: OverwriteByExpression => overwrite.write
      case overwrite: OverwritePartitionsDynamic => overwrite.write
      case merge: InsertOnlyMerge => merge.write
      case change: WriteDelta => change.write
      case BatchOfStream(write, _) => Some(write)
      case _ => None
    }
    write.collect { case recording: ReadRecordingWrite => recording }
  }
}
