package io.deltaic.upkeep

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileStatus, Path}
import org.slf4j.LoggerFactory

import io.deltaic.log.{Checkpoint, ExpiredFiles, LogStore}
import io.deltaic.protocol.Printable
import io.deltaic.replay.{CheckpointReader, DeltaLog}

/**
 * Deletes what has outlived the log's retention, in the steps of Protocol § Metadata Cleanup.
 *
 * A checkpoint only stands for what was before it once it was looked into: of one that is damaged or has lost a sidecar
 * nothing hangs, and an older one is taken.
 */
private[upkeep] final class LogCleanup(log: DeltaLog, store: LogStore) {
  import LogCleanup._

  private val table: Path = log.table
  private val files = new ExpiredFiles(table, store)
  private val checkpoints = new CheckpointReader(table, log.conf, store, DeltaLog.NeverDistributed)

  /**
   * Deletes nothing before `protectedVersion` unless everything before it has expired (Protocol § Checkpoint Protection):
   * commits there may use features that the table's protocol no longer lists, and the checkpoints that hide these from
   * readers stay as long as any of the commits does.
   *
   * @return how many files were deleted
   */
  def run(retentionMs: Long, nowMs: Long, protectedVersion: Long = 0): Int = {
    val deleted = log
      .newestNotAfter(cutoffMs(retentionMs, nowMs))
      .flatMap(cutoffCheckpoint)
      .filter(_.version >= protectedVersion)
      .fold(0)(checkpoint => deleteAll(files.before(checkpoint.version)))
    val yesterdayMs = cutoffMs(DayMs, nowMs)
    val count = deleted + deleteAll(files.abandoned(yesterdayMs)) + deleteSidecars(yesterdayMs)
    if (count > 0) logger.info("Table {}: {} expired files of the log were deleted", table, count)
    count
  }

  /** The newest checkpoint that is not newer than the cutoff commit, and can be read (step 2). */
  private def cutoffCheckpoint(commit: Long): Option[Checkpoint] =
    files.checkpoints.reverseIterator.filter(_.version <= commit).find(isReadable)

  private def isReadable(checkpoint: Checkpoint): Boolean =
    try {
      checkpoints.verify(checkpoint)
      true
    } catch {
      case NonFatal(e) =>
        logger.warn(
          "Table {}: cleanup passes over the checkpoint of version {}, which cannot be read: {}",
          table,
          checkpoint.version,
          Printable.messageOf(e)
        )
        false
    }

  /** Steps 4 and 5. While any checkpoint cannot be read, nobody knows which sidecars it names. */
  private def deleteSidecars(olderThanMs: Long): Int =
    if (files.unnamedSidecars(Set.empty, olderThanMs).isEmpty) 0
    else {
      val kept = files.checkpoints
      if (!kept.forall(isReadable)) 0
      else {
        val named = kept.flatMap(checkpoints.sidecars).flatMap(checkpoints.fileOf).map(_.getName)
        deleteAll(files.unnamedSidecars(named.toSet, olderThanMs))
      }
    }

  /** Oldest first, so that what is left when it stops half way is still one unbroken log. */
  private def deleteAll(expired: Iterator[FileStatus]): Int =
    expired.toVector.count(file => store.delete(file.getPath))
}

private object LogCleanup {
  private val logger = LoggerFactory.getLogger(classOf[LogCleanup])

  private val DayMs = 86400000L

  /** Midnight UTC of the day on which the retention ends (step 1). */
  def cutoffMs(retentionMs: Long, nowMs: Long): Long =
    Math.floorDiv(nowMs - retentionMs, DayMs) * DayMs
}
