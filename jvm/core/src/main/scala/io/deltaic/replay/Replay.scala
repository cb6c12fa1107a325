package io.deltaic.replay

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.log._
import io.deltaic.protocol.{DeltaicException, TableFeatures}

/** Makes snapshots of log files. */
private[replay] final class Replay(table: Path, conf: Configuration, store: LogStore) {

  private val reader = new CommitReader(table, store)
  private val checkpoints = new CheckpointReader(table, conf)

  /**
   *   1. The checkpoint's header and the commits' protocol say whether this build can read the table; only then are the
   *      checkpoint's files read.
   *   1. The checkpoint is the state that the commits advance.
   */
  def full(segment: LogSegment): Snapshot = {
    val header = segment.checkpoint.fold(TableState.empty(table))(checkpoints.readHeader)
    val base = segment.checkpoint.fold(header) { checkpoint =>
      header.protocol.foreach { p =>
        TableFeatures.requireReadable(table.toString, checkpoint.version, p, header.metadata)
      }
      checkpoints.readFiles(checkpoint, header)
    }
    snapshot(segment, base.advanced(commits(segment.commits)))
  }

  /** The snapshot after `old` and the commits that follow it without a gap. */
  def advance(old: Snapshot, segment: LogSegment): Snapshot =
    snapshot(segment, old.state.advanced(commits(segment.commits)))

  private def commits(files: Seq[FileStatus]): Iterator[CommitFile] =
    LogThreads.mapInOrder(files.iterator)(f => reader.readForReplay(FileNames.versionOf(f), f))

  private def snapshot(segment: LogSegment, state: TableState): Snapshot = {
    val protocol = state.protocol.getOrElse(missing("PROTOCOL", segment))
    val metadata = state.metadata.getOrElse(missing("METADATA", segment))
    TableFeatures.requireReadable(table.toString, segment.version, protocol, Some(metadata))
    val lastFile = segment.lastCommit.getOrElse(segment.files.last)
    val inCommit =
      if (TableFeatures.isActive(protocol, metadata, "inCommitTimestamp")) {
        segment.lastCommit
          .flatMap(reader.readCommitInfo(segment.version, _))
          .flatMap(_.inCommitTimestampMs)
      } else None
    new Snapshot(
      table,
      segment.version,
      inCommit.getOrElse(lastFile.getModificationTime),
      protocol,
      metadata,
      state.files,
      state.transactions,
      state.domains,
      state.tombstones
    )
  }

  private def missing(what: String, segment: LogSegment): Nothing = {
    val names = segment.files.map(_.getPath.getName)
    throw new DeltaicException(
      s"DELTAIC_STATE_WITHOUT_$what",
      Map(
        "table" -> table.toString,
        "version" -> segment.version.toString,
        "files" -> (if (names.size > 3) s"${names.head} to ${names.last}" else names.mkString(", "))
      )
    )
  }
}
