package io.deltaic.replay

import java.time.Instant

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.log.{FileNames, LastVacuumInfo, LogStore}
import io.deltaic.protocol.{CommitInfo, DeltaicException, DeltaicThrowable}

/**
 * A VACUUM that has deleted the files that only a version and older ones need: when it ran, the version had been
 * superseded for longer than the retention.
 *
 * @param cutoffMs files of versions that were superseded before are deleted
 */
private[deltaic] final case class VacuumedVersion(timeMs: Long, cutoffMs: Long) {

  /** Why files are missing, in an error. */
  def reason: String =
    s"VACUUM at ${Instant.ofEpochMilli(timeMs)} deleted files of versions that " +
      s"were superseded before ${Instant.ofEpochMilli(cutoffMs)}"
}

private[deltaic] object VacuumedVersion {

  /** The first such VACUUM, by the history of the table or else by `_last_vacuum_info`; None if neither can be read. */
  def find(log: DeltaLog, version: Long): Option[VacuumedVersion] =
    try search(log, version)
    catch { case NonFatal(_) => None }

  private def search(log: DeltaLog, version: Long): Option[VacuumedVersion] = {
    val later = log.commitInfos(newestFirst = false).filter(_._1 > version).buffered
    later.headOption.flatMap { case (_, supersededMs, _) =>
      val runs = later.flatMap { case (_, timeMs, info) => info.flatMap(started(timeMs, _)) }
      (runs ++ recorded(log)).find(_.cutoffMs > supersededMs)
    }
  }

  /** The error for a missing file of a version: `missing`, unless VACUUM explains it. */
  def explain(table: String, version: Long, file: String, conf: Configuration)(
      missing: => DeltaicThrowable
  ): DeltaicThrowable =
    find(new DeltaLog(new Path(table), conf), version).fold(missing) { vacuum =>
      DeltaicException(
        "DELTAIC_VERSION_VACUUMED",
        Map(
          "table" -> table,
          "version" -> version.toString,
          "file" -> file,
          "vacuumTimestamp" -> Instant.ofEpochMilli(vacuum.timeMs).toString,
          "cutoffTimestamp" -> Instant.ofEpochMilli(vacuum.cutoffMs).toString
        )
      )
    }

  private def started(timeMs: Long, info: CommitInfo): Option[VacuumedVersion] =
    if (!info.operation.contains("VACUUM START")) None
    else {
      val parameters = info.json.path("operationParameters")
      Seq("specifiedRetentionMillis", "defaultRetentionMillis")
        .map(parameters.path(_).asLong(-1L))
        .find(_ >= 0)
        .map(retentionMs => VacuumedVersion(timeMs, timeMs - retentionMs))
    }

  private def recorded(log: DeltaLog): Option[VacuumedVersion] = {
    val directory = FileNames.logDirectory(log.table)
    val store = LogStore.forPath(directory, log.conf)
    for {
      info <- LastVacuumInfo.read(directory, store)
      cutoffMs <- info.cutoffMs
      file <- store.status(LastVacuumInfo.path(directory))
    } yield VacuumedVersion(file.getModificationTime, cutoffMs)
  }
}
