package io.deltaic.upkeep

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.FileStatus
import org.slf4j.LoggerFactory

import io.deltaic.log._
import io.deltaic.protocol.ActionJson
import io.deltaic.replay.{DeltaLog, Snapshot}

/** Something to do for a log once a version is committed. Who commits decides what; see `deltaic.commit.hooks`. */
sealed abstract class UpkeepTask(val name: String)

object UpkeepTask {

  /** The version checksum file. */
  case object Checksum extends UpkeepTask("checksum")

  /** @param partSize above how many rows the checkpoint goes into several files, if ever */
  final case class ClassicCheckpoint(partSize: Option[Int]) extends UpkeepTask("checkpoint")

  /** @param alsoClassic whether older readers are shown the protocol under the classic name */
  final case class V2Checkpoint(sidecarSize: Int, alsoClassic: Boolean)
      extends UpkeepTask("checkpoint")

  /** A log compaction file of these versions, both inclusive. */
  final case class Compaction(first: Long, last: Long) extends UpkeepTask("compaction")

  /** The deletion of what the log no longer needs. */
  final case class Cleanup(retentionMs: Long) extends UpkeepTask("cleanup")
}

/**
 * Does what is due for one table. A task that fails is logged and remembered, never thrown: the commit it follows stands.
 *
 * @param layoutOf which columns the table's checkpoints have
 */
final class Upkeep(log: DeltaLog, layoutOf: Snapshot => CheckpointLayout) {
  import Upkeep._

  private val directory = FileNames.logDirectory(log.table)
  private val store = LogStore.forPath(directory, log.conf)
  private val state = UpkeepState.of(log.table)

  /**
   * The newest checkpoint that this process knows of, -1 for none. The log is only asked if that is older than
   * `notBelow`: others may have written one since.
   */
  def newestCheckpoint(notBelow: Long): Long = {
    if (state.newestCheckpoint < notBelow)
      LastCheckpoint.version(directory, store).foreach(state.checkpointed)
    state.newestCheckpoint
  }

  /** The names of the tasks that failed when they were tried last. */
  def failed: Set[String] = state.failed

  /** Without the commit there is nothing to do: the table was deleted, or the log cleaned up. */
  def run(version: Long, tasks: Seq[UpkeepTask]): Unit = tasks.foreach { task =>
    try {
      if (store.status(FileNames.commit(directory, version)).isDefined) perform(version, task)
      state.succeeded(task.name)
    } catch {
      case NonFatal(e) =>
        state.failedAt(task.name)
        logger.warn(
          "Table {}: version {} is committed, but its {} failed, and is left to a later commit: {}",
          log.table,
          version,
          task.name,
          Option(e.getMessage).getOrElse(e.toString),
          e
        )
    }
  }

  private def perform(version: Long, task: UpkeepTask): Unit = task match {
    case UpkeepTask.Checksum =>
      val writer = new ChecksumWriter(log.table, store)
      log.afterCommit(version) match {
        case Some(snapshot) if !snapshot.isDistributed => writer.write(snapshot)
        case _ => writer.writeFromPrevious(version)
      }
    case UpkeepTask.ClassicCheckpoint(partSize) => checkpoint(version)(_.writeClassic(partSize))
    case UpkeepTask.V2Checkpoint(sidecarSize, alsoClassic) =>
      checkpoint(version)(_.writeV2(sidecarSize, alsoClassic))
    case UpkeepTask.Compaction(first, last) =>
      new CompactionWriter(log.table, store).write(first, last)
      ()
    case UpkeepTask.Cleanup(retentionMs) =>
      val nowMs = System.currentTimeMillis
      val cutoffMs = LogCleanup.cutoffMs(retentionMs, nowMs)
      // Until the cutoff moves, which it does once a day, there is nothing more to delete.
      if (state.cleanedBefore < cutoffMs) {
        new LogCleanup(log, store).run(retentionMs, nowMs)
        state.cleaned(cutoffMs)
      }
  }

  private def checkpoint(version: Long)(
      write: CheckpointWriter => Option[WrittenCheckpoint]
  ): Unit = {
    val commit = FileNames.commit(directory, version)
    store.status(commit).foreach { seen =>
      val snapshot = log.afterCommit(version).getOrElse(log.at(version))
      val isStillThere = () => store.status(commit).exists(isSame(_, seen))
      val layout = layoutOf(snapshot)
      val nowMs = System.currentTimeMillis
      val writer = new CheckpointWriter(snapshot, layout, store, log.conf, nowMs, isStillThere)
      write(writer).foreach(w => LastCheckpoint.write(directory, store, hint(w)))
      state.checkpointed(version)
    }
  }

  private def isSame(a: FileStatus, b: FileStatus): Boolean =
    a.getLen == b.getLen && a.getModificationTime == b.getModificationTime

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
