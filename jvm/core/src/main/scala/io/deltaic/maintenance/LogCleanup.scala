package io.deltaic.maintenance

import scala.util.control.NonFatal

import org.apache.hadoop.fs.{FileStatus, Path}
import org.slf4j.LoggerFactory

import io.deltaic.log.{Checkpoint, ExpiredFiles, FileNames, LastVacuumInfo, LogStore}
import io.deltaic.protocol.Printable
import io.deltaic.replay.{CheckpointReader, DeltaLog}

/**
 * Deletes log files after their retention, in the steps of Protocol § Metadata Cleanup.
 *
 * A checkpoint is verified before the files that it supersedes are deleted. If it is damaged or lacks a sidecar, an
 * older one is used.
 */
private[maintenance] final class LogCleanup(log: DeltaLog, store: LogStore) {
  import LogCleanup._

  private val table: Path = log.table
  private val files = new ExpiredFiles(table, store)
  private val checkpoints = new CheckpointReader(table, log.conf, store, DeltaLog.NeverDistributed)

  /**
   * Deletes nothing before `protectedVersion` unless everything before it is expired (Protocol § Checkpoint
   * Protection): commits there may use features that the table's protocol no longer lists, and the checkpoints that
   * hide these from readers must stay as long as any of these commits.
   *
   * @return the number of deleted files
   */
  def run(retentionMs: Long, nowMs: Long, protectedVersion: Long = 0): Int = {
    val deleted = log
      .newestNotAfter(cutoffMs(retentionMs, nowMs))
      .map(math.min(_, firstForVacuum))
      .flatMap(cutoffCheckpoint)
      .filter(_.version >= protectedVersion)
      .fold(0)(checkpoint => deleteAll(files.before(checkpoint.version)))
    val yesterdayMs = cutoffMs(DayMs, nowMs)
    val count = deleted + deleteAll(files.abandoned(yesterdayMs)) + deleteSidecars(yesterdayMs)
    if (count > 0) logger.info("Table {}: {} expired files of the log were deleted", table, count)
    count
  }

  /**
   * Deletes what a checkpoint that is not newer than `cutoffMs` replaces, regardless of other retentions and of VACUUM
   * LITE.
   *
   * @return the number of deleted files
   */
  def truncate(cutoffMs: Long, protectedVersion: Long): Int = log
    .newestNotAfter(cutoffMs)
    .flatMap(cutoffCheckpoint)
    .filter(_.version >= protectedVersion)
    .fold(0)(checkpoint => deleteAll(files.before(checkpoint.version)))

  /** The first commit that the next VACUUM LITE needs, if the table is vacuumed so. */
  private def firstForVacuum: Long =
    LastVacuumInfo.read(FileNames.logDirectory(table), store)
      .filter(_.isLiteUsed)
      .fold(Long.MaxValue)(_.version + 1)

  /** The newest readable checkpoint that is not newer than the cutoff commit (step 2). */
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

  /** Steps 4 and 5. If a checkpoint cannot be read, the sidecars that it references are unknown, so none is deleted. */
  private def deleteSidecars(olderThanMs: Long): Int =
    if (files.unreferencedSidecars(Set.empty, olderThanMs).isEmpty) 0
    else {
      val remaining = files.checkpoints
      if (!remaining.forall(isReadable)) 0
      else {
        val referenced =
          remaining.flatMap(checkpoints.sidecars).flatMap(checkpoints.fileOf).map(_.getName)
        deleteAll(files.unreferencedSidecars(referenced.toSet, olderThanMs))
      }
    }

  /** Oldest first, so that the log stays contiguous if the deletion is interrupted. */
  private def deleteAll(expired: Iterator[FileStatus]): Int =
    expired.toVector.count(file => store.delete(file.getPath))
}

private object LogCleanup {
  private val logger = LoggerFactory.getLogger(classOf[LogCleanup])

  private val DayMs = 86400000L

  /** The cutoff: midnight UTC of the day on which the retention ends (step 1). */
  def cutoffMs(retentionMs: Long, nowMs: Long): Long =
    Math.floorDiv(nowMs - retentionMs, DayMs) * DayMs
}
