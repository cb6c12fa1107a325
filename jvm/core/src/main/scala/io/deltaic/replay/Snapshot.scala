package io.deltaic.replay

import java.lang.ref.SoftReference

import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.log.VersionChecksum
import io.deltaic.protocol._

/** How many files a table has, and how many bytes those have. */
final case class TableSize(numFiles: Long, sizeBytes: Long)

/**
 * A table at one version, which stays as it is: what it finds out later, it remembers. Safe to share between threads.
 *
 * A snapshot whose checkpoint is too large for the driver is distributed: the files of the checkpoint stay in it
 * ([[stored]]), and those that commits have added since are in memory ([[filesInMemory]]). All else is in memory in any
 * case.
 *
 * @param table the root directory, qualified
 * @param timestampMs when the version was committed: its in-commit timestamp where the table keeps those, else the
 *   modification time of its commit file
 * @param checksum what the checksum file of the version says of files, if there is one
 * @param commitFile the version's commit, as it was listed; none if only its checkpoint is left
 */
final class Snapshot private[replay] (
    val table: Path,
    val version: Long,
    val timestampMs: Long,
    val protocol: Protocol,
    val metadata: Metadata,
    private[replay] val state: TableState,
    checksum: Option[VersionChecksum] = None,
    private[deltaic] val commitFile: Option[FileStatus] = None
) {

  def isDistributed: Boolean = state.stored.isDefined

  private[deltaic] def stored: Option[StoredFiles] = state.stored

  /** All files, unless the snapshot is distributed. */
  private[deltaic] def filesInMemory: FileTable = state.files

  /**
   * All files, in memory. Whoever can do with one after another asks for [[adds]]: of a distributed snapshot, memory
   * may not suffice for all.
   */
  def files: FileTable = state.stored.fold(state.files) { stored =>
    synchronized {
      Option(loaded.get).getOrElse {
        val tables = stored.tables.toVector :+ state.files
        val all = FileTable.of(table, tables.map(t => t.block(Array.range(0, t.size))))
        loaded = new SoftReference(all)
        all
      }
    }
  }

  private var loaded = new SoftReference[FileTable](null)

  /** The files one after another, never all in memory unless they are there already. */
  def adds: Iterator[AddFile] =
    state.stored.iterator.flatMap(_.adds) ++
      (0 until state.files.size).iterator.map(state.files.add)

  /** Unless nobody has counted them. */
  def size: Option[TableSize] =
    if (isDistributed) countedFiles.map(_.size).orElse(toldSize) else Some(state.files.counts.size)

  private def toldSize: Option[TableSize] =
    for (told <- checksum; files <- told.numFiles; bytes <- told.sizeBytes)
      yield TableSize(files, bytes)

  /** What was counted of a distributed snapshot. */
  @volatile private var countedFiles: Option[FileCounts] = None

  /**
   * Takes note of the files of the checkpoint that count, once somebody has read them all, and holds the sum against the
   * checksum file.
   */
  private[deltaic] def noteCounted(inCheckpoint: FileCounts): Unit = {
    val all = inCheckpoint + state.files.counts
    val isNew = synchronized {
      val before = countedFiles
      countedFiles = Some(all)
      before != countedFiles
    }
    if (isNew) ChecksumCheck.warn(this, checksum.toSeq.flatMap(ChecksumCheck.ofFiles(_, all)))
  }

  /** The newest `txn` of each application, expired or not. */
  def transactions: Map[String, SetTransaction] = state.transactions

  /**
   * The progress of applications that still counts: what was updated longer ago than
   * `delta.setTransactionRetentionDuration` does not, as if it had not been. When a `txn` was updated it need not say.
   */
  def unexpiredTransactions(nowMs: Long): Map[String, SetTransaction] =
    TableProperties.transactionRetentionMs(metadata).fold(transactions) { retentionMs =>
      transactions.filter { case (_, t) => t.lastUpdatedMs.forall(_ > nowMs - retentionMs) }
    }

  /** The metadata domains that are not removed. */
  def domains: Map[String, DomainMetadata] = state.domains

  /**
   * The logical files removed from the table whose `remove` a checkpoint must keep: those that had not expired when the
   * snapshot was made (Protocol § Add File and Remove File).
   */
  def tombstones: Iterator[RemoveFile] =
    state.stored.iterator.flatMap(_.tombstones).filter(state.isUnexpired) ++
      state.tombstones.valuesIterator

  /**
   * About how many bytes of heap this snapshot keeps by now, of which it may share some with older ones. Queries add what
   * they decode of statistics and partition values.
   */
  def retainedBytes: Long =
    Snapshot.HeaderBytes + metadata.schemaString.length +
      Snapshot.TransactionBytes * transactions.size +
      state.files.retainedBytes + Snapshot.TombstoneBytes * state.tombstones.size +
      state.stored.fold(0L)(_.retainedBytes)

  override def toString: String = {
    val form = if (isDistributed) " and more in its checkpoint" else ""
    s"Snapshot($table, version $version, ${state.files.size} files$form)"
  }

  private[replay] def withoutExpiredTombstones(nowMs: Long): Snapshot =
    TableProperties.deletedFileRetentionMs(metadata).fold(this) { retentionMs =>
      val kept = state.withoutTombstonesBefore(nowMs - retentionMs)
      new Snapshot(table, version, timestampMs, protocol, metadata, kept, checksum, commitFile)
    }

  /** To look at all tombstones after every commit would cost more than they do. */
  private[replay] def withFewerTombstones(nowMs: Long): Snapshot =
    if (state.tombstones.size <= 2 * state.unexpired + 1000) this
    else withoutExpiredTombstones(nowMs)
}

private object Snapshot {

  /** About what a table without files takes, its schema aside. */
  private val HeaderBytes = 2000L
  private val TransactionBytes = 250L

  /** A remove action with its path, key and place in the map, as measured. */
  private val TombstoneBytes = 500L
}
