package io.deltaic.replay

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

import io.deltaic.log._
import io.deltaic.protocol.{DeltaicException, DeltaicThrowable, Printable, Protocol, TableFeatures}

/**
 * Reads snapshots from log files.
 *
 * @param maxInMemoryBytes the snapshot of a larger checkpoint is distributed
 * @param refusesUnreadable whether a table that this build cannot read is refused
 */
private[replay] final class Replay(
    table: Path,
    conf: Configuration,
    store: LogStore,
    maxInMemoryBytes: Long,
    refusesUnreadable: Boolean = true
) {
  import Replay._

  private val reader = new CommitReader(table, store)
  private val checkpoints = new CheckpointReader(table, conf, store, maxInMemoryBytes)

  /**
   * The snapshot of the chosen files.
   *
   *   1. The chosen checkpoint may turn out to be unreadable. Then a warning names it, and the next best files are
   *      chosen, down to every commit from version 0 on.
   *   1. Cleanup may delete a file after it was chosen and before it is read. Then the files are chosen once more.
   *
   * @param choose returns the best files, excluding the checkpoints with these names
   * @param alreadyTried checkpoints that turned out to be unreadable before
   */
  def full(
      choose: Set[String] => LogSegment,
      alreadyTried: Seq[UnreadableCheckpoint] = Nil
  ): (Snapshot, LogSegment) = {
    alreadyTried.foreach(warn)
    var unreadable = alreadyTried.toVector
    var hasVanished = false
    var done: (Snapshot, LogSegment) = null
    var firstVersion = alreadyTried.headOption.fold(-1L)(_.checkpoint.version)
    while (done == null) {
      val segment =
        try choose(unreadable.map(_.checkpoint.name).toSet)
        catch {
          case e: DeltaicThrowable if unreadable.nonEmpty =>
            throw nothingReadable(firstVersion, unreadable, e)
        }
      if (unreadable.size == alreadyTried.size) firstVersion = segment.version
      try done = full(segment) -> segment
      catch {
        case e: UnreadableCheckpoint =>
          warn(e)
          unreadable :+= e
        case _: FileNotFoundException if !hasVanished => hasVanished = true
      }
    }
    done
  }

  private def warn(unreadable: UnreadableCheckpoint): Unit = logger.warn(
    "Table {}: the checkpoint of version {} cannot be read, an older one or the commits are read instead: {}",
    table,
    unreadable.checkpoint.version,
    Printable.messageOf(unreadable)
  )

  /**
   *   1. The checkpoint's protocol and metaData show whether this build can read the table; only then are its file
   *      actions read.
   *   1. The checkpoint is the state that the commits advance.
   */
  private def full(segment: LogSegment): Snapshot = {
    val checksum = segment.checksum.flatMap(VersionChecksum.read(store, _))
    val base = segment.checkpoint.fold(TableState.empty(table)) { checkpoint =>
      // A wrong checksum is harmless: the checkpoint's own protocol and metaData are checked anyway.
      val isKnown = checksum.flatMap(_.protocol).exists(TableFeatures.isReadable(_, None))
      checkpoints.read(checkpoint, isKnown)(requireReadable(_, segment))
    }
    advanced(base, segment, checksum).withoutExpiredTombstones(System.currentTimeMillis)
  }

  /**
   * Refuses a table whose checkpoint this build may misread. A later commit may have removed the feature that this
   * build lacks (Protocol § Action Reconciliation).
   */
  private def requireReadable(base: TableState, segment: LogSegment): Unit =
    base.nonFile.protocol.foreach { protocol =>
      if (refusesUnreadable && !TableFeatures.isReadable(protocol, base.nonFile.metadata)) {
        val (newest, metadata) =
          commits(segment.entries).foldLeft(protocol -> base.nonFile.metadata) {
            case ((p, m), commit) =>
              commit.protocol.getOrElse(p) -> commit.metadata.orElse(m)
          }
        TableFeatures.requireReadable(table.toString, segment.version, newest, metadata)
      }
    }

  /**
   * The size of all files of a checkpoint, as in its snapshot ([[TableState.checkpointBytes]]); None if they cannot be
   * read.
   *
   * @param protocol the protocol of the table, which shows whether there may be sidecars
   */
  def bytesOf(checkpoint: Checkpoint, protocol: Protocol): Option[Long] =
    if (
      FileNames.isUuidCheckpoint(checkpoint.files.head) ||
      TableFeatures.isListed(protocol, "v2Checkpoint")
    ) checkpoints.bytesOf(checkpoint)
    else Some(checkpoint.sizeBytes)

  /** The snapshot after `old` and the commits that follow it without a gap. */
  def advance(old: Snapshot, segment: LogSegment): Snapshot =
    advanced(old.state, segment, segment.checksum.flatMap(VersionChecksum.read(store, _)))
      .withFewerTombstones(System.currentTimeMillis)

  /** A difference from the checksum is logged, and the commits are read again without compactions if any were used. */
  private def advanced(
      base: TableState,
      segment: LogSegment,
      checksum: Option[VersionChecksum]
  ): Snapshot = {
    def replayed(entries: Seq[LogEntry]): Snapshot = {
      val found = snapshot(segment, base.advanced(commits(entries)), checksum)
      val differences = checksum.toSeq.flatMap(ChecksumCheck.differences(_, found))
      ChecksumCheck.warn(found, differences)
      if (differences.nonEmpty && entries.exists(_.isCompacted)) replayed(segment.commitEntries)
      else found
    }
    replayed(segment.entries)
  }

  private def commits(entries: Seq[LogEntry]): Iterator[CommitFile] =
    LogThreads.mapInOrder(entries.iterator)(reader.readForReplay).flatten

  private def snapshot(
      segment: LogSegment,
      state: TableState,
      checksum: Option[VersionChecksum]
  ): Snapshot = {
    val protocol = state.nonFile.protocol.getOrElse(missing("PROTOCOL", segment))
    val metadata = state.nonFile.metadata.getOrElse(missing("METADATA", segment))
    if (refusesUnreadable)
      TableFeatures.requireReadable(table.toString, segment.version, protocol, Some(metadata))
    val inCommit =
      if (TableFeatures.isActive(protocol, metadata, "inCommitTimestamp")) {
        segment.lastCommit
          .flatMap(reader.readCommitInfo(segment.version, _))
          .flatMap(_.inCommitTimestampMs)
      } else None
    new Snapshot(
      table,
      segment.version,
      inCommit.getOrElse(segment.lastFile.getModificationTime),
      protocol,
      metadata,
      state,
      checksum.map(_.ofFiles),
      segment.lastCommit
    )
  }

  private def missing(what: String, segment: LogSegment): Nothing = {
    val names = segment.files.map(_.getPath.getName)
    throw DeltaicException(
      s"DELTAIC_STATE_WITHOUT_$what",
      Map(
        "table" -> table.toString,
        "version" -> segment.version.toString,
        "files" -> (if (names.size > 3) s"${names.head} to ${names.last}" else names.mkString(", "))
      )
    )
  }

  private def nothingReadable(
      version: Long,
      tried: Seq[UnreadableCheckpoint],
      cause: DeltaicThrowable
  ): DeltaicThrowable = DeltaicException(
    "DELTAIC_CHECKPOINT_UNREADABLE",
    Map(
      "table" -> table.toString,
      "version" -> version.toString,
      "tried" -> tried.map(_.getMessage).mkString("; ")
    ),
    cause
  )
}

private object Replay {
  private val logger = LoggerFactory.getLogger(classOf[Replay])
}
