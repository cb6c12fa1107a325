package io.deltaic.replay

import org.apache.hadoop.fs.Path

import io.deltaic.protocol._

/**
 * A table at one version. Immutable, and safe to share between threads.
 *
 * @param table the root directory, qualified
 * @param timestampMs when the version was committed: its in-commit timestamp where the table keeps those, else the
 *   modification time of its commit file
 */
final class Snapshot private[replay] (
    val table: Path,
    val version: Long,
    val timestampMs: Long,
    val protocol: Protocol,
    val metadata: Metadata,
    private[replay] val state: TableState
) {

  def files: FileTable = state.files

  def transactions: Map[String, SetTransaction] = state.transactions

  /** The metadata domains that are not removed. */
  def domains: Map[String, DomainMetadata] = state.domains

  /**
   * The logical files removed from the table whose `remove` a checkpoint must keep: those that had not expired when the
   * snapshot was made (Protocol § Add File and Remove File).
   */
  def tombstones: Iterator[RemoveFile] = state.tombstones.valuesIterator

  /** About how many bytes of heap this snapshot keeps, of which it may share some with older ones. */
  def retainedBytes: Long =
    state.files.retainedBytes + Snapshot.TombstoneBytes * state.tombstones.size

  override def toString: String = s"Snapshot($table, version $version, ${files.size} files)"

  private[replay] def withoutExpiredTombstones(nowMs: Long): Snapshot =
    TableProperties.deletedFileRetentionMs(metadata).fold(this) { retentionMs =>
      val kept = state.withoutTombstonesBefore(nowMs - retentionMs)
      new Snapshot(table, version, timestampMs, protocol, metadata, kept)
    }

  /** To look at all tombstones after every commit would cost more than they do. */
  private[replay] def withFewerTombstones(nowMs: Long): Snapshot =
    if (state.tombstones.size <= 2 * state.unexpired + 1000) this
    else withoutExpiredTombstones(nowMs)
}

private object Snapshot {

  /** A remove action with its path, key and place in the map, as measured. */
  private val TombstoneBytes = 500L
}
