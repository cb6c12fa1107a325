package io.deltaic.spark.restore

import scala.collection.mutable

import io.deltaic.protocol.{Action, AddFile, DomainMetadata, LogPath, RemoveFile}
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.vacuum.CommitActions

/** The row IDs of a file as its actions state them. */
private[restore] final case class RowIds(baseRowId: Long, defaultRowCommitVersion: Option[Long])

/**
 * The row IDs that files of an older version got after it, such as when row tracking was enabled, and that a row must
 * keep (Protocol § Row Tracking). The newest version knows them only of files that it has.
 *
 * @param olderVersion the commits after it are read
 * @param lastVersion inclusive
 */
private[restore] final class LaterRowIds(log: DeltaLog, olderVersion: Long, lastVersion: Long) {

  /**
   * The last row IDs of each of these files that has some.
   *
   * @param paths canonical paths
   */
  def of(paths: Set[String]): Map[String, RowIds] =
    if (paths.isEmpty) Map.empty
    else {
      def known(path: String, base: Option[Long], version: Option[Long]) =
        base.map(id => LogPath.canonical(log.table, path) -> RowIds(id, version)).filter {
          case (canonical, _) => paths(canonical)
        }
      // None where the table loses row tracking, and with it all row IDs: later ones begin at 0 again.
      def ofActions(actions: Iterator[Action]): Vector[Option[(String, RowIds)]] =
        actions.flatMap {
          case domain: DomainMetadata if domain.domain == LaterRowIds.Domain && domain.removed =>
            Some(None)
          case add: AddFile =>
            known(add.path, add.baseRowId, add.defaultRowCommitVersion).map(Some(_))
          case remove: RemoveFile =>
            known(remove.path, remove.baseRowId, remove.defaultRowCommitVersion).map(Some(_))
          case _ => None
        }.toVector
      val found = mutable.HashMap.empty[String, RowIds]
      val first = math.max(olderVersion + 1, log.earliestCommit)
      new CommitActions(log)
        .foreach("RESTORE", "find row IDs", first, lastVersion)(ofActions)(_.foreach {
          case Some(file) => found += file
          case None => found.clear()
        })
      found.toMap
    }
}

private object LaterRowIds {

  /** The domain of the high-water mark (Protocol § Row Tracking). */
  private val Domain = "delta.rowTracking"
}
