package io.deltaic.replay

import java.lang.ref.SoftReference

import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.log.VersionChecksum
import io.deltaic.protocol._

/** The number and total size of files of a table. */
final case class TableSize(numFiles: Long, sizeBytes: Long) {

  def +(other: TableSize): TableSize =
    TableSize(numFiles + other.numFiles, sizeBytes + other.sizeBytes)

  def -(other: TableSize): TableSize =
    TableSize(numFiles - other.numFiles, sizeBytes - other.sizeBytes)
}

object TableSize {
  val none: TableSize = TableSize(0L, 0L)

  def of(files: Iterable[AddFile]): TableSize =
    TableSize(files.size.toLong, files.iterator.map(_.sizeBytes).sum)
}

/**
 * A table at one version. It is logically immutable; counts and derived data are cached later. Thread safe.
 *
 * A snapshot whose checkpoint is too large for the driver is distributed: the file actions of the checkpoint stay in it
 * ([[stored]]), and files that later commits added are in memory ([[filesInMemory]]). All other state is always in
 * memory.
 *
 * @param table the root directory, qualified
 * @param timestampMs the time of the commit: its in-commit timestamp if enabled, else the modification time of its
 *   commit file
 * @param checksum the fields about files of the version's checksum file, if there is one
 * @param commitFile the version's commit file, as listed; None if only its checkpoint is left
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

  private[deltaic] def stored: Option[UnloadedFiles] = state.stored

  /** All files, unless the snapshot is distributed. */
  private[deltaic] def filesInMemory: FileTable = state.files

  /**
   * All files, in memory. Callers that can process one file at a time use [[adds]]: all files of a distributed snapshot
   * may not fit in memory.
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

  /** The files as an iterator, which does not load all of them into memory. */
  def adds: Iterator[AddFile] =
    state.stored.iterator.flatMap(_.adds) ++
      (0 until state.files.size).iterator.map(state.files.add)

  /** The size, None if the files of a distributed snapshot have not been counted. */
  def size: Option[TableSize] =
    if (isDistributed) countedFiles.map(_.size).orElse(sizeFromChecksum)
    else Some(state.files.counts.size)

  private def sizeFromChecksum: Option[TableSize] =
    for (c <- checksum; files <- c.numFiles; bytes <- c.sizeBytes)
      yield TableSize(files, bytes)

  /** The counts of a distributed snapshot. */
  @volatile private var countedFiles: Option[FileCounts] = None

  /**
   * Records the counts of the live files of the checkpoint, after all of them were read, and compares the totals with
   * the checksum file.
   */
  private[deltaic] def recordCounts(inCheckpoint: FileCounts): Unit = {
    val all = inCheckpoint + state.files.counts
    val isNew = synchronized {
      val before = countedFiles
      countedFiles = Some(all)
      before != countedFiles
    }
    if (isNew) ChecksumCheck.warn(this, checksum.toSeq.flatMap(ChecksumCheck.ofFiles(_, all)))
  }

  /** The newest `txn` of each application, expired or not. */
  def transactions: Map[String, SetTransaction] = state.nonFile.transactions

  /**
   * The transactions that have not expired. One that was updated longer ago than
   * `delta.setTransactionRetentionDuration` is ignored. A `txn` without `lastUpdated` does not expire.
   */
  def unexpiredTransactions(nowMs: Long): Map[String, SetTransaction] =
    TableProperties.transactionRetentionMs(metadata).fold(transactions) { retentionMs =>
      transactions.filter { case (_, t) => t.lastUpdatedMs.forall(_ > nowMs - retentionMs) }
    }

  /** The metadata domains that are not removed. */
  def domains: Map[String, DomainMetadata] = state.nonFile.domains

  /**
   * The tombstones that a checkpoint must retain: those that had not expired when the snapshot was created (Protocol §
   * Add File and Remove File).
   */
  def tombstones: Iterator[RemoveFile] =
    state.stored.iterator.flatMap(_.tombstones).filter(state.tombstones.isUnexpired) ++
      tombstonesInMemory

  /** All tombstones, unless the snapshot is distributed. */
  private[deltaic] def tombstonesInMemory: Iterator[RemoveFile] =
    state.tombstones.byKey.valuesIterator

  /**
   * The approximate current heap size of this snapshot in bytes, some of which older snapshots may share. Queries add
   * decoded statistics and partition values.
   */
  def retainedBytes: Long =
    Snapshot.BaseBytes + metadata.schemaString.length +
      Snapshot.TransactionBytes * transactions.size +
      state.files.retainedBytes + Snapshot.TombstoneBytes * state.tombstones.size +
      state.stored.fold(0L)(_.retainedBytes)

  /**
   * The definition of the table at some version, without its files: for a reader that knows which files it reads, of a
   * version that may no longer be in the log.
   */
  private[deltaic] def definedAs(version: Long, protocol: Protocol, metadata: Metadata): Snapshot =
    new Snapshot(table, version, timestampMs, protocol, metadata, TableState.empty(table))

  override def toString: String = {
    val form = if (isDistributed) " and more in its checkpoint" else ""
    s"Snapshot($table, version $version, ${state.files.size} files$form)"
  }

  private[replay] def withoutExpiredTombstones(nowMs: Long): Snapshot =
    TableProperties.deletedFileRetentionMs(metadata).fold(this) { retentionMs =>
      val kept = state.copy(tombstones = state.tombstones.withoutExpired(nowMs - retentionMs))
      new Snapshot(table, version, timestampMs, protocol, metadata, kept, checksum, commitFile)
    }

  private[replay] def withFewerTombstones(nowMs: Long): Snapshot =
    if (state.tombstones.needPruning) withoutExpiredTombstones(nowMs) else this
}

private object Snapshot {

  /** The approximate size of a table without files and without its schema. */
  private val BaseBytes = 2000L
  private val TransactionBytes = 250L

  /** A remove action with its path, key and place in the map, as measured. */
  private val TombstoneBytes = 500L
}
