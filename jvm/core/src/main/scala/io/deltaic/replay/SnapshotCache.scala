package io.deltaic.replay

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.FileStatus

/**
 * A snapshot and its last file, which distinguishes a table that was replaced from one that has new commits.
 *
 * @param lastFile the last file of the segment that the snapshot was read from
 * @param unreadable names of checkpoints that were skipped because they are unreadable
 */
private[replay] final case class CachedSnapshot(
    snapshot: Snapshot,
    lastFile: FileStatus,
    unreadable: Set[String] = Set.empty
) {
  def version: Long = snapshot.version

  /** Whether `file` is still the last file of the snapshot. */
  def endsWith(file: FileStatus): Boolean =
    lastFile.getPath.getName == file.getPath.getName && DeltaLog.isSameFile(lastFile, file)
}

/**
 * The cached snapshots of one table: the newest, the one of the last time travel, and the last one after a commit that
 * was already superseded. Also the lock for loading a newer one.
 */
private[replay] final class CachedTable {
  @volatile var newest: CachedSnapshot = _
  @volatile var travelled: CachedSnapshot = _
  @volatile var committed: CachedSnapshot = _

  /** The size of the checkpoint of this name; measuring it requires a read. */
  @volatile var measured: Option[(String, Long)] = None

  def snapshots: Seq[CachedSnapshot] = Seq(newest, travelled, committed).filter(_ != null)
  def retainedBytes: Long = snapshots.map(_.snapshot.retainedBytes).sum
}

/**
 * An LRU cache of the snapshots of tables, by their roots.
 *
 * @param maxTables the maximum number of tables, regardless of their size
 */
private[replay] final class SnapshotCache(maxTables: Int) {

  /** The maximum heap size of cached snapshots. Set by tests. */
  @volatile var maxBytes: Long = Runtime.getRuntime.maxMemory / 4

  private val tables = new java.util.LinkedHashMap[String, CachedTable](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[String, CachedTable]): Boolean =
      size > maxTables
  }

  def of(root: String): CachedTable =
    tables.synchronized(tables.computeIfAbsent(root, _ => new CachedTable))

  /**
   * Evicts the least recently used tables until the others fit: first the data derived from their files, which is
   * cheaper to recompute, then the whole tables.
   */
  def evict(except: CachedTable): Unit = tables.synchronized {
    var bytes = tables.values.asScala.map(_.retainedBytes).sum
    // The lazy iterator checks the current value of `bytes` before each table.
    val others = tables.values.iterator.asScala.filter(_ ne except)
    others.takeWhile(_ => bytes > maxBytes).foreach { table =>
      bytes -= table.retainedBytes
      table.snapshots.foreach(_.snapshot.state.files.forgetDerived())
      bytes += table.retainedBytes
    }
    val eldestFirst = tables.values.iterator
    while (bytes > maxBytes && eldestFirst.hasNext) {
      val table = eldestFirst.next()
      if (table ne except) {
        bytes -= table.retainedBytes
        eldestFirst.remove()
      }
    }
    if (bytes > maxBytes) {
      except.travelled = null
      except.committed = null
    }
  }

  /** Removes the tables whose roots match. */
  def forget(matches: String => Boolean): Unit = tables.synchronized {
    tables.keySet.removeIf(root => matches(root))
    ()
  }

  /** The size of each cached table in bytes. */
  def retainedBytes: Map[String, Long] = tables.synchronized {
    tables.asScala.view.mapValues(_.retainedBytes).toMap
  }
}
