package io.deltaic.upkeep

import scala.util.Try
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.{FileStatus, Path}
import org.slf4j.LoggerFactory

import io.deltaic.log._
import io.deltaic.protocol.{ActionJson, Printable}
import io.deltaic.replay.{DeltaLog, Snapshot}

/** Something to do for a log once a version is committed. Who commits decides what; see `deltaic.commit.hooks`. */
sealed abstract class UpkeepTask(val name: String)

object UpkeepTask {

  sealed abstract class Checkpoint extends UpkeepTask("checkpoint")

  /** The version checksum file. */
  case object Checksum extends UpkeepTask("checksum")

  /** @param partSize above how many rows the checkpoint goes into several files, if ever */
  final case class ClassicCheckpoint(partSize: Option[Int]) extends Checkpoint

  /** @param alsoClassic whether older readers are shown the protocol under the classic name */
  final case class V2Checkpoint(sidecarSize: Int, alsoClassic: Boolean) extends Checkpoint

  /** A log compaction file of these versions, both inclusive. */
  final case class Compaction(first: Long, last: Long) extends UpkeepTask("compaction")

  /**
   * The deletion of what the log no longer needs.
   *
   * @param protectedVersion the log before this version is deleted all at once or not at all; 0 protects nothing
   */
  final case class Cleanup(retentionMs: Long, protectedVersion: Long = 0)
      extends UpkeepTask("cleanup")

  /** The lists of data files for engines that read no log. */
  case object SymlinkManifest extends UpkeepTask("symlinkManifest")
}

/**
 * Does what is due for one table. A task that fails is logged and remembered, never thrown: the commit it follows stands.
 *
 * @param layoutOf which columns the table's checkpoints have
 * @param partitionFolderOf by which name a partition of these values has a folder
 */
final class Upkeep(
    log: DeltaLog,
    layoutOf: Snapshot => CheckpointLayout,
    partitionFolderOf: Snapshot => Map[String, String] => String
) {
  import Upkeep._

  def table: Path = log.table

  private val directory = FileNames.logDirectory(log.table)
  private val store = LogStore.forPath(directory, log.conf)

  /**
   * The newest checkpoint that this process knows of or is about to write, -1 for none. The log is only asked if that
   * is older than `notBelow`: others may have written one since.
   */
  def newestCheckpoint(notBelow: Long): Long = {
    val state = UpkeepState.of(log.table)
    if (state.newestCheckpoint < notBelow)
      LastCheckpoint.version(directory, store).foreach(state.checkpointed)
    state.newestCheckpoint
  }

  /** The names of the tasks that failed when they were tried last. */
  def failed: Set[String] = UpkeepState.failed(log.table)

  /** Does the tasks that are due once this version is committed. */
  def run(version: Long, tasks: Seq[UpkeepTask]): Unit = due(version, tasks)()

  /**
   * The same, to be done later. Unless the commit is then still the file that it is now, nothing is done: the table was
   * deleted or replaced, or the log cleaned up.
   */
  def due(version: Long, tasks: Seq[UpkeepTask]): () => Unit = {
    val commit = Try(new Commit(version, store.status(FileNames.commit(directory, version))))
    if (isOfAnotherTable(version)) UpkeepState.forget(log.table)
    val state = UpkeepState.of(log.table)
    tasks.collect { case c: UpkeepTask.Checkpoint => state.checkpointBegins(version, c.name) }
    () =>
      try tasks.foreach(task => attempt(version, task, commit, state))
      finally state.checkpointEnds(version)
  }

  /**
   * Versions of one table may be handed over in another order than theirs; what is then forgotten costs a look at the
   * log.
   */
  private def isOfAnotherTable(version: Long): Boolean =
    version == 0 || UpkeepState.of(log.table).newestWritten > version

  private def attempt(
      version: Long,
      task: UpkeepTask,
      commit: Try[Commit],
      state: UpkeepState
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

  private def perform(commit: Commit, task: UpkeepTask, state: UpkeepState): Unit = task match {
    case UpkeepTask.Checksum =>
      val writer = new ChecksumWriter(log.table, store, () => commit.require())
      log.afterCommit(commit.version) match {
        case Some(snapshot) if !snapshot.isDistributed => writer.write(snapshot)
        case _ => writer.writeFromPrevious(commit.version)
      }
    case UpkeepTask.ClassicCheckpoint(partSize) =>
      checkpoint(commit, state)(_.writeClassic(partSize))
    case UpkeepTask.V2Checkpoint(sidecarSize, alsoClassic) =>
      checkpoint(commit, state)(_.writeV2(sidecarSize, alsoClassic))
    case UpkeepTask.Compaction(first, last) =>
      new CompactionWriter(log.table, store, () => commit.require()).write(first, last)
      ()
    case UpkeepTask.Cleanup(retentionMs, protectedVersion) =>
      val nowMs = System.currentTimeMillis
      val cutoffMs = LogCleanup.cutoffMs(retentionMs, nowMs)
      // Until the cutoff moves, which it does once a day, there is nothing more to delete.
      if (state.cleanedBefore < cutoffMs) {
        new LogCleanup(log, store).run(retentionMs, nowMs, protectedVersion)
        state.cleaned(cutoffMs)
      }
    case UpkeepTask.SymlinkManifest =>
      new ManifestCatchUp(log, store, partitionFolderOf, () => commit.require()).run()
  }

  private def checkpoint(commit: Commit, state: UpkeepState)(
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

  /** @param seen the file when it was handed over, if there was one */
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

private object Upkeep {
  private val logger = LoggerFactory.getLogger(classOf[Upkeep])
}

/** The commit that upkeep follows is gone, or another one. */
private[upkeep] final class TableReplaced(table: Path, version: Long)
    extends java.io.IOException(s"version $version of $table is no longer what was read")
