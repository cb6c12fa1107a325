package io.deltaic.spark.vacuum

import org.apache.spark.sql.deltaic.JobInternals

import io.deltaic.log.{FileNames, LastVacuumInfo, LogStore, Progress}
import io.deltaic.protocol.{Action, AddCdcFile, DeltaicException, RemoveFile, TableProperties}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.util.Cancellation

/**
 * Finds the unused files of VACUUM LITE: those that commits before the cutoff have removed, and their change data. It
 * begins after the commits of which the last VACUUM has deleted the removed files.
 *
 * Log cleanup of another engine may have deleted some commits since. Then the tombstones of the oldest checkpoint
 * replace these commits, if it is old enough to have them all.
 */
private[vacuum] final class RemovedFiles(
    log: DeltaLog,
    snapshot: Snapshot,
    rule: UnusedRule,
    cancellation: Cancellation
) {
  private val seen = new PathHashes

  def findIn(unused: UnusedFiles): Unit =
    log.newestNotAfter(rule.cutoffMs).foreach { newest =>
      val last = math.min(newest, snapshot.version)
      val info = lastVacuum
      val next = info.fold(0L)(_.version + 1)
      val earliest = log.earliestCommit
      if (next < earliest && next <= last) addTombstones(info, unused)
      new CommitActions(log)
        .foreach("VACUUM", "find removed files", math.max(next, earliest), last) {
          _.flatMap(unusedOf).toVector
        } { found =>
          cancellation.check()
          found.foreach { case (path, sizeBytes) => add(path, sizeBytes, unused) }
        }
    }

  /** A file with a newer version belongs to a table that was at this path before. */
  private def lastVacuum: Option[LastVacuumInfo] = {
    val directory = FileNames.logDirectory(log.table)
    LastVacuumInfo.read(directory, LogStore.forPath(directory, log.conf))
      .filter(_.version <= snapshot.version)
  }

  private def addTombstones(info: Option[LastVacuumInfo], unused: UnusedFiles): Unit = {
    // The file actions of a distributed snapshot are read as they are in its checkpoint: none has expired.
    val stored = new DeltaLog(log.table, log.conf, 0L).at(log.earliestVersion).stored
    val retentionMs = TableProperties.deletedFileRetentionMs(snapshot.metadata)
    val hasAll = for {
      checkpoint <- stored
      since <- info.flatMap(_.cutoffMs)
    } yield retentionMs.forall(checkpoint.writtenAtMs - _ <= since)
    if (!hasAll.contains(true))
      throw DeltaicException(
        "DELTAIC_VACUUM_LITE_LOG_MISSING",
        Map(
          "table" -> log.table.toString,
          "version" -> info.fold(0L)(_.version + 1).toString,
          "earliest" -> log.earliestCommit.toString
        )
      )
    val phase = JobInternals.name("VACUUM", "find removed files", log.table.toString)
    Progress.of(phase, None, "tombstones") { progress =>
      stored.iterator.flatMap(_.tombstones).foreach { tombstone =>
        cancellation.check()
        unusedOf(tombstone).foreach { case (path, sizeBytes) => add(path, sizeBytes, unused) }
        progress.add(1)
      }
    }
  }

  /** The unused files that an action has removed or added as change data, with their sizes. */
  private def unusedOf(action: Action): Seq[(String, Long)] = {
    val paths = rule.paths
    val found = action match {
      case remove: RemoveFile =>
        val vector = remove.deletionVector.flatMap(paths.ofVector)
        paths.ofLog(remove.path).take(1).map(_ -> remove.sizeBytes.getOrElse(0L)) ++
          vector.map(_ -> 0L)
      case change: AddCdcFile => paths.ofLog(change.path).take(1).map(_ -> change.sizeBytes)
      case _ => Nil
    }
    found.filterNot { case (path, _) => rule.used.contains(path) || rule.hidden.inPath(path) }
  }

  private def add(path: String, sizeBytes: Long, unused: UnusedFiles): Unit =
    if (seen.add(path)) unused.add(path, sizeBytes)
}
