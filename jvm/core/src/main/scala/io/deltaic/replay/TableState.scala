package io.deltaic.replay

import scala.collection.immutable.HashMap
import scala.collection.mutable

import org.apache.hadoop.fs.Path

import io.deltaic.log.CommitFile
import io.deltaic.protocol._

/**
 * The state of a table during replay (Protocol § Action Reconciliation).
 *
 * @param files the files in memory: all, or, if `stored` is set, those that later commits added
 * @param tombstones in memory, as with the files
 * @param stored the file actions that stay in the checkpoint, including tombstones
 * @param checkpointBytes the size of the checkpoint that replay began with, if any
 */
private[replay] final case class TableState(
    table: Path,
    files: FileTable,
    nonFile: NonFileState = NonFileState(),
    tombstones: Tombstones = Tombstones(),
    stored: Option[UnloadedFiles] = None,
    checkpointBytes: Long = 0
) {

  /**
   * The state after these commits, which follow it in this order.
   *
   *   1. The newest protocol, metaData, txn per appId and domainMetadata per domain win.
   *   1. Only the newest action of each logical file matters, so these are collected first.
   *   1. Each of these logical files is removed from the table, stored or in memory, and the newest `add`s are added.
   *   1. A newest `remove` becomes a tombstone; an `add` deletes the tombstone of its file.
   */
  def advanced(commits: Iterator[CommitFile]): TableState = {
    var nonFile = this.nonFile
    val newest = mutable.LinkedHashMap.empty[String, FileAction]
    commits.flatMap(_.actions).foreach {
      case file: FileAction => newest(FileKey.of(table, file.path, file.dvId)) = file
      case other => nonFile = nonFile.updated(other)
    }
    val added = new FileBlockBuilder(table)
    var removes = tombstones.byKey
    newest.foreach {
      case (key, add: AddFile) =>
        added.append(add, key)
        removes = removes.removed(key)
      case (key, remove: RemoveFile) => removes = removes.updated(key, Tombstones.bare(remove))
    }
    val nowFiles =
      if (newest.isEmpty) files else files.updated(newest.keysIterator, added.result())
    copy(
      files = nowFiles,
      nonFile = nonFile,
      tombstones = tombstones.copy(byKey = removes),
      stored = if (newest.isEmpty) stored else stored.map(_.without(newest.keys))
    )
  }
}

private[replay] object TableState {
  def empty(table: Path): TableState = TableState(table, FileTable.empty(table))
}

/**
 * The newest of the actions that are not about files.
 *
 * @param transactions by application
 * @param domains the domains that are not removed
 */
private[replay] final case class NonFileState(
    protocol: Option[Protocol] = None,
    metadata: Option[Metadata] = None,
    transactions: Map[String, SetTransaction] = Map.empty,
    domains: Map[String, DomainMetadata] = Map.empty
) {

  def updated(newer: Action): NonFileState = newer match {
    case p: Protocol => copy(protocol = Some(p))
    case m: Metadata => copy(metadata = Some(m))
    case t: SetTransaction => copy(transactions = transactions.updated(t.appId, t))
    case d: DomainMetadata if d.removed => copy(domains = domains.removed(d.domain))
    case d: DomainMetadata => copy(domains = domains.updated(d.domain, d))
    case _: FileAction | _: AddCdcFile | _: CommitInfo | _: CheckpointMetadata | _: Sidecar => this
  }
}

/**
 * The newest `remove` of each logical file that is not in the table.
 *
 * @param byKey by [[FileKey]]; without statistics and tags, which checkpoints do not store either
 * @param unexpired the number of tombstones after expired ones were last dropped
 * @param expiredUntilMs the `deletionTimestamp` up to which tombstones have been dropped
 */
private[replay] final case class Tombstones(
    byKey: HashMap[String, RemoveFile] = HashMap.empty,
    unexpired: Int = 0,
    expiredUntilMs: Long = Long.MinValue
) {
  def size: Int = byKey.size

  /** A `remove` without a timestamp is treated as the oldest, as in delta-spark. */
  def withoutExpired(expiredUntilMs: Long): Tombstones = {
    val dropping = copy(expiredUntilMs = expiredUntilMs)
    val kept = byKey.filter { case (_, remove) => dropping.isUnexpired(remove) }
    dropping.copy(byKey = kept, unexpired = kept.size)
  }

  def isUnexpired(remove: RemoveFile): Boolean =
    expiredUntilMs == Long.MinValue || remove.deletionTimestampMs.exists(_ > expiredUntilMs)

  /** Whether many were added since the last time. Checking all after every commit would cost more than they do. */
  def needPruning: Boolean = size > 2 * unexpired + 1000
}

private[replay] object Tombstones {
  def bare(remove: RemoveFile): RemoveFile =
    if (remove.stats.isEmpty && remove.tags.isEmpty) remove
    else remove.copy(stats = None, tags = Map.empty)
}
