package io.deltaic.replay

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.FileStatus

/**
 * A snapshot and the file it ends with, by which a table that was replaced is told from one that grew.
 *
 * @param lastFile of the segment that the snapshot was made of
 * @param unreadable names of checkpoints that were passed over for it
 */
private[replay] final case class Known(
    snapshot: Snapshot,
    lastFile: FileStatus,
    unreadable: Set[String] = Set.empty
) {
  def version: Long = snapshot.version

  /** Whether the snapshot ends with a file, as it was listed now. */
  def endsWith(file: FileStatus): Boolean =
    lastFile.getPath.getName == file.getPath.getName && DeltaLog.isSameFile(lastFile, file)
}

/**
 * Where the logs of one table keep its newest snapshot, the one of the last time travel, and the last one that was
 * made after a commit while others went on; also the lock under which they look for a newer one.
 */
private[replay] final class KnownTable {
  @volatile var newest: Known = _
  @volatile var travelled: Known = _
  @volatile var passed: Known = _

  /** How large the checkpoint of this name is: one has to be read for that. */
  @volatile var measured: Option[(String, Long)] = None

  def held: Seq[Known] = Seq(newest, travelled, passed).filter(_ != null)
  def retainedBytes: Long = held.map(_.snapshot.retainedBytes).sum
}

/**
 * What is known of tables, by their roots, as long as there is room.
 *
 * @param tablesKept how many tables, however little they take
 */
private[replay] final class KnownTables(tablesKept: Int) {

  /** Of the heap, what snapshots may take that nobody may be using. Tests set it. */
  @volatile var bytesKept: Long = Runtime.getRuntime.maxMemory / 4

  private val tables = new java.util.LinkedHashMap[String, KnownTable](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[String, KnownTable]): Boolean =
      size > tablesKept
  }

  def of(root: String): KnownTable =
    tables.synchronized(tables.computeIfAbsent(root, _ => new KnownTable))

  /**
   * Forgets the tables that were asked for longest ago until the others fit: first what was made of their files, which
   * takes less time to make again, then all.
   */
  def evict(except: KnownTable): Unit = tables.synchronized {
    var bytes = tables.values.asScala.map(_.retainedBytes).sum
    // An iterator looks at what is left of `bytes` before each table.
    val others = tables.values.iterator.asScala.filter(_ ne except)
    others.takeWhile(_ => bytes > bytesKept).foreach { table =>
      bytes -= table.retainedBytes
      table.held.foreach(_.snapshot.state.files.forgetDerived())
      bytes += table.retainedBytes
    }
    val eldestFirst = tables.values.iterator
    while (bytes > bytesKept && eldestFirst.hasNext) {
      val table = eldestFirst.next()
      if (table ne except) {
        bytes -= table.retainedBytes
        eldestFirst.remove()
      }
    }
    if (bytes > bytesKept) {
      except.travelled = null
      except.passed = null
    }
  }

  /** Forgets the tables with these roots. */
  def forget(isMeant: String => Boolean): Unit = tables.synchronized {
    tables.keySet.removeIf(root => isMeant(root))
    ()
  }

  /** The tables held, and how many bytes they take. */
  def retainedBytes: Map[String, Long] = tables.synchronized {
    tables.asScala.view.mapValues(_.retainedBytes).toMap
  }
}
