package io.deltaic.spark.vacuum

import io.deltaic.log.{CommitFile, FileNames, LastVacuumInfo, LogStore}
import io.deltaic.protocol.{AddCdcFile, DeltaicException, RemoveFile, TableProperties}
import io.deltaic.replay.{DeltaLog, Snapshot}

/**
 * Finds the unused files of VACUUM LITE: those that commits before the cutoff have removed, and their change data. It
 * begins after the commits of which the last VACUUM has deleted the removed files.
 *
 * Log cleanup of another engine may have deleted some commits since. Then the tombstones of the oldest checkpoint
 * replace these commits, if it is old enough to have them all.
 */
private[vacuum] final class RemovedFiles(log: DeltaLog, snapshot: Snapshot, rule: UnusedRule) {
  private val seen = new PathHashes

  def findIn(unused: UnusedFiles): Unit =
    log.newestNotAfter(rule.cutoffMs).foreach { newest =>
      val last = math.min(newest, snapshot.version)
      val info = lastVacuum
      val next = info.fold(0L)(_.version + 1)
      val earliest = log.earliestCommit
      if (next < earliest && next <= last) addTombstones(info, unused)
      log.commits(math.max(next, earliest), last).foreach {
        case (commit, _) => addCommit(commit, unused)
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
    stored.iterator.flatMap(_.tombstones).foreach(addRemove(_, unused))
  }

  private def addCommit(commit: CommitFile, unused: UnusedFiles): Unit = commit.actions.foreach {
    case remove: RemoveFile => addRemove(remove, unused)
    case change: AddCdcFile =>
      rule.paths.ofLog(change.path).headOption.foreach(add(_, change.sizeBytes, unused))
    case _ => ()
  }

  private def addRemove(remove: RemoveFile, unused: UnusedFiles): Unit = {
    rule.paths.ofLog(remove.path).headOption
      .foreach(add(_, remove.sizeBytes.getOrElse(0L), unused))
    remove.deletionVector.flatMap(rule.paths.ofVector).foreach(add(_, 0L, unused))
  }

  private def add(path: String, sizeBytes: Long, unused: UnusedFiles): Unit =
    if (!rule.used.contains(path) && !rule.hidden.inPath(path) && seen.add(path))
      unused.add(path, sizeBytes)
}
