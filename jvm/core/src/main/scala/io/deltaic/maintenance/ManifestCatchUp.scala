package io.deltaic.maintenance

import java.nio.charset.StandardCharsets.UTF_8

import scala.annotation.tailrec
import scala.util.Try

import org.apache.hadoop.fs.Path

import io.deltaic.log.{FileNames, LogStore}
import io.deltaic.replay.{DeltaLog, Snapshot}

/**
 * Updates the symlink manifests to the newest version. A marker file in the log directory stores the version of the
 * manifests. If a process was killed or failed after its commit, the maintenance of the next commit, in any process,
 * writes the missing manifests.
 *
 * @param partitionFolderOf the folder name of a partition with these values
 * @param guard see [[CheckpointWriter]]
 */
private[maintenance] final class ManifestCatchUp(
    log: DeltaLog,
    store: LogStore,
    partitionFolderOf: Snapshot => Map[String, String] => String,
    guard: () => Unit
) {

  private val marker = new Path(FileNames.logDirectory(log.table), "_last_symlink_manifest")

  def run(): Unit = list(from = markedVersion, rounds = 3)

  /** Writes the manifests of all partitions, whatever the version of the existing ones. */
  def runWhole(): Unit = list(from = None, rounds = 3)

  /**
   * Repeats if there were commits in the meantime: another process may have written their manifests before we wrote
   * older ones. If commits are faster than manifests, their own maintenance continues.
   */
  @tailrec private def list(from: Option[Long], rounds: Int): Unit = {
    val snapshot = log.latest()
    val manifests =
      new SymlinkManifests(snapshot, partitionFolderOf(snapshot), store, log.conf, guard)
    val isWhole = snapshot.metadata.partitionColumns.isEmpty || !manifests.exist
    from.filterNot(_ => isWhole).flatMap(touchedSince(_, snapshot.version)) match {
      case Some(partitions) => manifests.write(partitions)
      case None => manifests.writeAll()
    }
    guard()
    store.replace(marker, snapshot.version.toString.getBytes(UTF_8))
    if (rounds > 1 && log.latest().version > snapshot.version)
      list(Some(snapshot.version), rounds - 1)
  }

  private def markedVersion: Option[Long] =
    Try(new String(store.read(marker), UTF_8).trim.toLong).toOption

  /** The values of the partitions that commits after a version changed, if all of them contain the values. */
  private def touchedSince(version: Long, last: Long): Option[Seq[Map[String, String]]] =
    if (version > last) None
    else
      Try(((version + 1) to last).map(log.commit)).toOption.flatMap { commits =>
        val removed = commits.flatMap(_.removes.map(_.partitionValues))
        val added = commits.flatMap(_.adds.map(_.partitionValues))
        Option.when(commits.forall(_.metadata.isEmpty) && removed.forall(_.nonEmpty)) {
          (removed ++ added).distinct
        }
      }
}
