package io.deltaic.maintenance

import scala.util.Try
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.{FileStatus, Path}
import org.slf4j.LoggerFactory

import io.deltaic.log._
import io.deltaic.protocol.{ActionJson, Printable}
import io.deltaic.replay.{CheckpointReader, DeltaLog, Snapshot}

/** A post-commit maintenance task. The committer decides which tasks are due; see `deltaic.commit.hooks`. */
sealed abstract class MaintenanceTask(val name: String)

object MaintenanceTask {

  sealed abstract class Checkpoint extends MaintenanceTask("checkpoint")

  /** The version checksum file. */
  case object Checksum extends MaintenanceTask("checksum")

  /** @param partSize the number of rows above which the checkpoint has several parts, if any */
  final case class ClassicCheckpoint(partSize: Option[Int]) extends Checkpoint

  /** @param alsoClassic whether older readers find the protocol under the classic name */
  final case class V2Checkpoint(sidecarSize: Int, alsoClassic: Boolean) extends Checkpoint

  /** A log compaction file of these versions, both inclusive. */
  final case class Compaction(first: Long, last: Long) extends MaintenanceTask("compaction")

  /**
   * The deletion of expired log files.
   *
   * @param protectedVersion the log before this version is deleted all at once or not at all; 0 protects nothing
   */
  final case class Cleanup(retentionMs: Long, protectedVersion: Long = 0)
      extends MaintenanceTask("cleanup")

  /** The symlink manifests, for engines that do not read the log. */
  case object SymlinkManifest extends MaintenanceTask("symlinkManifest")
}

/**
 * Runs the maintenance of one table. A failure is logged and recorded, never thrown: the commit has already succeeded.
 *
 * @param layoutOf the columns of the table's checkpoints
 * @param partitionFolderOf the folder name of a partition with these values
 */
final class Maintenance(
    log: DeltaLog,
    layoutOf: Snapshot => CheckpointLayout,
    partitionFolderOf: Snapshot => Map[String, String] => String
) {
  import Maintenance._

  def table: Path = log.table

  private val directory = FileNames.logDirectory(log.table)
  private val store = LogStore.forPath(directory, log.conf)

  /**
   * The newest checkpoint that this process has recorded or is about to write, -1 for none. `_last_checkpoint` is read
   * only if that is older than `notBelow`: others may have written a newer one.
   */
  def newestCheckpoint(notBelow: Long): Long = {
    val state = MaintenanceState.of(log.table)
    if (state.newestCheckpoint < notBelow)
      LastCheckpoint.version(directory, store).foreach(state.checkpointed)
    state.newestCheckpoint
  }

  /** The names of the tasks whose last run failed. */
  def failed: Set[String] = MaintenanceState.failed(log.table)

  /** Writes the symlink manifests of all partitions, and deletes those of partitions that no longer exist. */
  def generateManifests(): Unit =
    new ManifestCatchUp(log, store, partitionFolderOf, () => ()).runWhole()

  /** The versions with a complete checkpoint. */
  def checkpointVersions: Seq[Long] = expired.checkpoints.map(_.version).distinct

  /** The versions with a checkpoint that only readers of V2 checkpoints can read. */
  def v2CheckpointVersions: Seq[Long] = {
    val reader = new CheckpointReader(log.table, log.conf, store, DeltaLog.NeverDistributed)
    expired.checkpoints.filter { checkpoint =>
      checkpoint.files.exists(FileNames.isUuidCheckpoint) || reader.sidecars(checkpoint).nonEmpty
    }.map(_.version).distinct
  }

  private def expired = new ExpiredFiles(log.table, store)

  /** Writes a classic checkpoint of a version, or fails. */
  def writeCheckpoint(version: Long): Unit = {
    val commit = new Commit(version, store.status(FileNames.commit(directory, version)))
    commit.require()
    val state = MaintenanceState.of(log.table)
    state.checkpointBegins(version, "checkpoint")
    try checkpoint(commit, state)(_.writeClassic(None))
    finally state.checkpointEnds(version)
  }

  /** Deletes the part of the log that a checkpoint of this age replaces; see [[MaintenanceTask.Cleanup]]. */
  def truncateLog(retentionMs: Long, protectedVersion: Long): Unit = {
    new LogCleanup(log, store).truncate(System.currentTimeMillis - retentionMs, protectedVersion)
    ()
  }

  /** Runs the tasks that are due after this commit. */
  def run(version: Long, tasks: Seq[MaintenanceTask]): Unit = due(version, tasks)()

  /**
   * The same, as a function to run later. It does nothing if the commit file has changed by then: the table was deleted
   * or replaced, or the log was cleaned up.
   */
  def due(version: Long, tasks: Seq[MaintenanceTask]): () => Unit = {
    val commit = Try(new Commit(version, store.status(FileNames.commit(directory, version))))
    if (isOfAnotherTable(version)) MaintenanceState.forget(log.table)
    val state = MaintenanceState.of(log.table)
    tasks.collect { case c: MaintenanceTask.Checkpoint => state.checkpointBegins(version, c.name) }
    () =>
      try tasks.foreach(task => attempt(version, task, commit, state))
      finally state.checkpointEnds(version)
  }

  /**
   * Versions of a table may be submitted out of order. The state that is then discarded costs one read of
   * `_last_checkpoint`.
   */
  private def isOfAnotherTable(version: Long): Boolean =
    version == 0 || MaintenanceState.of(log.table).newestWritten > version

  private def attempt(
      version: Long,
      task: MaintenanceTask,
      commit: Try[Commit],
      state: MaintenanceState
  ): Unit =
    try
      if (commit.get.isStillThere) {
        perform(commit.get, task, state)
        state.succeeded(task.name)
      }
    catch {
      case NonFatal(e) =>
        state.failedAt(task.name)
        logger.warn(
          "Table {}: version {} is committed, but its {} failed, and is left to a later commit: {}",
          log.table,
          version,
          task.name,
          Printable.messageOf(e),
          Printable.cause(e)
        )
    }

  private def perform(commit: Commit, task: MaintenanceTask, state: MaintenanceState): Unit =
    task match {
      case MaintenanceTask.Checksum =>
        val writer = new ChecksumWriter(log.table, store, () => commit.require())
        log.afterCommit(commit.version) match {
          case Some(snapshot) if !snapshot.isDistributed => writer.write(snapshot)
          case _ => writer.writeFromPrevious(commit.version)
        }
      case MaintenanceTask.ClassicCheckpoint(partSize) =>
        checkpoint(commit, state)(_.writeClassic(partSize))
      case MaintenanceTask.V2Checkpoint(sidecarSize, alsoClassic) =>
        checkpoint(commit, state)(_.writeV2(sidecarSize, alsoClassic))
      case MaintenanceTask.Compaction(first, last) =>
        new CompactionWriter(log.table, store, () => commit.require()).write(first, last)
        ()
      case MaintenanceTask.Cleanup(retentionMs, protectedVersion) =>
        val nowMs = System.currentTimeMillis
        val cutoffMs = LogCleanup.cutoffMs(retentionMs, nowMs)
        // Until the cutoff moves, once a day, there is nothing more to delete.
        if (state.cleanedBefore < cutoffMs) {
          new LogCleanup(log, store).run(retentionMs, nowMs, protectedVersion)
          state.cleaned(cutoffMs)
        }
      case MaintenanceTask.SymlinkManifest =>
        new ManifestCatchUp(log, store, partitionFolderOf, () => commit.require()).run()
    }

  private def checkpoint(commit: Commit, state: MaintenanceState)(
      write: CheckpointWriter => Option[WrittenCheckpoint]
  ): Unit = {
    val snapshot = log.afterCommit(commit.version).getOrElse(log.at(commit.version))
    val written = log.withReadableFiles(snapshot)(s => write(writerOf(s, commit)))
    written.foreach { w =>
      commit.require()
      LastCheckpoint.write(directory, store, hint(w))
    }
    state.checkpointed(commit.version)
  }

  private def writerOf(snapshot: Snapshot, commit: Commit): CheckpointWriter =
    new CheckpointWriter(
      snapshot,
      layoutOf(snapshot),
      store,
      log.conf,
      System.currentTimeMillis,
      () => commit.require()
    )

  /** @param seen the commit file at submission, if there was one */
  private final class Commit(val version: Long, seen: Option[FileStatus]) {

    def isStillThere: Boolean =
      seen.exists(s =>
        store.status(FileNames.commit(directory, version)).exists(DeltaLog.isSameFile(_, s))
      )

    def require(): Unit = if (!isStillThere) throw new TableReplaced(log.table, version)
  }

  /** Protocol § Last Checkpoint File Schema. */
  private def hint(written: WrittenCheckpoint): ObjectNode = {
    val json = ActionJson.mapper.createObjectNode()
    json.put("version", written.version)
    json.put("size", written.actions)
    written.parts.foreach(json.put("parts", _))
    json.put("sizeInBytes", written.sizeBytes)
    json.put("numOfAddFiles", written.adds)
    written.topLevel.foreach { file =>
      val v2 = ActionJson.mapper.createObjectNode()
      v2.put("path", file.getPath.getName)
      v2.put("sizeInBytes", file.getLen)
      v2.put("modificationTime", file.getModificationTime)
      json.set[JsonNode]("v2Checkpoint", v2)
    }
    json
  }
}

private object Maintenance {
  private val logger = LoggerFactory.getLogger(classOf[Maintenance])
}

/** The commit that triggered the maintenance was deleted or replaced. */
private[maintenance] final class TableReplaced(table: Path, version: Long)
    extends java.io.IOException(s"version $version of $table is no longer what was read")
