package io.deltaic.upkeep

import java.nio.charset.StandardCharsets.UTF_8

import scala.annotation.tailrec
import scala.util.Try

import org.apache.hadoop.fs.Path

import io.deltaic.log.{FileNames, LogStore}
import io.deltaic.replay.{DeltaLog, Snapshot}

/**
 * Brings the lists of data files to the newest version. A mark beside the log tells up to which version they are: so
 * what a commit should have listed whose process was killed, or failed at it, is listed after the next one, by whichever
 * process.
 *
 * @param partitionFolderOf by which name a partition of these values has a folder
 * @param guard see [[CheckpointWriter]]
 */
private[upkeep] final class ManifestCatchUp(
    log: DeltaLog,
    store: LogStore,
    partitionFolderOf: Snapshot => Map[String, String] => String,
    guard: () => Unit
) {

  private val mark = new Path(FileNames.logDirectory(log.table), "_last_symlink_manifest")

  def run(): Unit = list(from = marked, rounds = 3)

  /**
   * Again, if commits came meanwhile: another process may have listed them before we wrote what was before
   * them. Where they come faster than lists are written, their own upkeep goes on.
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
    store.replace(mark, snapshot.version.toString.getBytes(UTF_8))
    if (rounds > 1 && log.latest().version > snapshot.version)
      list(Some(snapshot.version), rounds - 1)
  }

  private def marked: Option[Long] =
    Try(new String(store.read(mark), UTF_8).trim.toLong).toOption

  /** The values of the partitions that commits after one version changed, if they tell. */
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
