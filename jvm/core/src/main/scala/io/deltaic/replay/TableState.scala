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
 * @param tombstones the newest `remove` of each logical file that is not in the table, by [[FileKey]]; without
 *   statistics and tags, which checkpoints do not store either
 * @param domains the domains that are not removed
 * @param unexpired the number of tombstones after expired ones were last dropped
 * @param stored the file actions that stay in the checkpoint, including tombstones
 * @param checkpointBytes the size of the checkpoint that replay began with, if any
 * @param expiredUntilMs the `deletionTimestamp` up to which tombstones have been dropped
 */
private[replay] final case class TableState(
    table: Path,
    protocol: Option[Protocol],
    metadata: Option[Metadata],
    files: FileTable,
    tombstones: HashMap[String, RemoveFile],
    transactions: Map[String, SetTransaction],
    domains: Map[String, DomainMetadata],
    unexpired: Int = 0,
    stored: Option[StoredFiles] = None,
    checkpointBytes: Long = 0,
    expiredUntilMs: Long = Long.MinValue
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
    var protocol = this.protocol
    var metadata = this.metadata
    var transactions = this.transactions
    var domains = this.domains
    val newest = mutable.LinkedHashMap.empty[String, FileAction]
    commits.flatMap(_.actions).foreach {
      case file: FileAction => newest(FileKey.of(table, file.path, file.dvId)) = file
      case p: Protocol => protocol = Some(p)
      case m: Metadata => metadata = Some(m)
      case t: SetTransaction => transactions = transactions.updated(t.appId, t)
      case d: DomainMetadata if d.removed => domains = domains.removed(d.domain)
      case d: DomainMetadata => domains = domains.updated(d.domain, d)
      case _: AddCdcFile | _: CommitInfo | _: CheckpointMetadata | _: Sidecar => ()
    }
    val added = new FileBlockBuilder(table)
    var tombstones = this.tombstones
    newest.foreach {
      case (key, add: AddFile) =>
        added.append(add, key)
        tombstones = tombstones.removed(key)
      case (key, remove: RemoveFile) => tombstones = tombstones.updated(key, bare(remove))
    }
    val nowFiles =
      if (newest.isEmpty) files else files.updated(newest.keysIterator, added.result())
    copy(
      protocol = protocol,
      metadata = metadata,
      files = nowFiles,
      tombstones = tombstones,
      transactions = transactions,
      domains = domains,
      stored = if (newest.isEmpty) stored else stored.map(_.without(newest.keys))
    )
  }

  /** A `remove` without a timestamp is treated as the oldest, as in delta-spark. */
  def withoutTombstonesBefore(timestampMs: Long): TableState = {
    val dropping = copy(expiredUntilMs = timestampMs)
    val kept = tombstones.filter { case (_, remove) => dropping.isUnexpired(remove) }
    dropping.copy(tombstones = kept, unexpired = kept.size)
  }

  def isUnexpired(remove: RemoveFile): Boolean =
    expiredUntilMs == Long.MinValue || remove.deletionTimestampMs.exists(_ > expiredUntilMs)

  private def bare(remove: RemoveFile): RemoveFile =
    if (remove.stats.isEmpty && remove.tags.isEmpty) remove
    else remove.copy(stats = None, tags = Map.empty)
}

private[replay] object TableState {

  def empty(table: Path): TableState = TableState(
    table,
    protocol = None,
    metadata = None,
    FileTable.empty(table),
    HashMap.empty,
    Map.empty,
    Map.empty
  )
}
