package io.deltaic.replay

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}

/**
 * The logical files of a snapshot, numbered from 0, as columns.
 *
 * The rows are stored in blocks that successive snapshots share; `live` lists the live rows, as ordinals over all
 * blocks, ascending. A newer snapshot therefore costs one block for the new files and one copy of `live`. Blocks are
 * merged as their number grows, the newest ones first, so that there are never more than a few dozen.
 *
 * @param starts the ordinal of the first row of each block
 */
final class FileTable private (
    table: Path,
    private[deltaic] val blocks: Array[FileBlock],
    private[deltaic] val starts: Array[Int],
    private[deltaic] val live: Array[Int]
) {

  def size: Int = live.length

  /** The path as spelled in the log: URI-encoded, relative to the table or absolute. */
  def path(i: Int): String = { val o = live(i); val b = blockOf(o); blocks(b).paths(o - starts(b)) }

  /** The value of a partition column, serialized; null if it is null, or if the file has none. */
  def partitionValue(i: Int, column: String): String = {
    val o = live(i)
    val b = blockOf(o)
    blocks(b).partitionValue(o - starts(b), column)
  }

  def sizeBytes(i: Int): Long = {
    val o = live(i)
    val b = blockOf(o)
    blocks(b).sizesBytes(o - starts(b))
  }

  def modificationTimeMs(i: Int): Long = {
    val o = live(i)
    val b = blockOf(o)
    blocks(b).modificationTimesMs(o - starts(b))
  }

  /** The file's statistics as JSON, or null. */
  def stats(i: Int): String = {
    val o = live(i)
    val b = blockOf(o)
    blocks(b).statsOf(o - starts(b))
  }

  /** The file's deletion vector, or null. */
  def deletionVector(i: Int): DeletionVectorDescriptor = {
    val o = live(i)
    val b = blockOf(o)
    blocks(b).deletionVector(o - starts(b))
  }

  /** The complete action, with `dataChange` false: it describes the table, not a commit. */
  def add(i: Int): AddFile = {
    val o = live(i)
    val b = blockOf(o)
    blocks(b).add(o - starts(b))
  }

  /** The index of the logical file, -1 if it is not in the table. The path may have any spelling. */
  def indexOf(path: String, dvId: Option[String]): Int = indexOfKey(FileKey.of(table, path, dvId))

  lazy val totalSizeBytes: Long = {
    var sum = 0L
    var i = 0
    while (i < size) { sum += sizeBytes(i); i += 1 }
    sum
  }

  private[deltaic] def counts: FileCounts =
    FileCounts(size.toLong, totalSizeBytes, withDeletionVectors.toLong, deletedRecords)

  /** The number of files that have a deletion vector. */
  lazy val withDeletionVectors: Int =
    if (blocks.forall(_.deletionVectors == null)) 0
    else (0 until size).count(deletionVector(_) != null)

  /** The table without the files of these keys, see [[FileKey]]. */
  private[deltaic] def without(keys: Set[String]): FileTable =
    if (keys.isEmpty) this
    else {
      val kept = live.filterNot { ordinal =>
        val b = blockOf(ordinal)
        keys(blocks(b).key(ordinal - starts(b)))
      }
      new FileTable(table, blocks, starts, kept)
    }

  /**
   * The logical files that another table of the same root does not have, see [[FileKey]].
   *
   * @param visited is called for each file
   */
  private[deltaic] def notIn(other: FileTable, visited: () => Unit = () => ()): Array[Int] =
    (0 until size).iterator.filter { i =>
      visited()
      val b = blockOf(live(i))
      other.indexOfKey(blocks(b).key(live(i) - starts(b))) < 0
    }.toArray

  /** A block of only these files. */
  private[deltaic] def block(files: Array[Int]): FileBlock = {
    val builder = new FileBlockBuilder(table, files.length)
    files.foreach { i =>
      val b = blockOf(live(i))
      blocks(b).copyTo(builder, live(i) - starts(b))
    }
    builder.result()
  }

  /** The number of rows that the deletion vectors delete from the files. */
  lazy val deletedRecords: Long =
    if (withDeletionVectors == 0) 0L
    else (0 until size).iterator.map(deletionVector).filter(_ != null).map(_.cardinality).sum

  /** The approximate heap size of the table in bytes, including dead rows and data derived from the rows. */
  def retainedBytes: Long =
    blocks.iterator.map(b => b.retainedBytes + b.derivedBytes).sum + 4L * live.length

  /** Drops the data that was derived from the rows. */
  private[deltaic] def forgetDerived(): Unit = blocks.foreach(_.forgetDerived())

  private[replay] def blockCount: Int = blocks.length

  /** The number of rows in memory, including dead rows. */
  private[replay] def rowsInMemory: Int = if (blocks.isEmpty) 0 else starts.last + blocks.last.size

  /**
   * The table after some commits.
   *
   * @param changed the keys that the commits reference; their current files are removed
   * @param added the `add`s that are the newest actions of their keys
   */
  private[replay] def updated(changed: Iterator[String], added: FileBlock): FileTable = {
    val removed = new java.util.BitSet
    changed.foreach { key =>
      val i = indexOfKey(key)
      if (i >= 0) removed.set(i)
    }
    val end = rowsInMemory
    val kept = size - removed.cardinality
    val nowLive = new Array[Int](kept + added.size)
    var to = 0
    var i = 0
    while (i < size) {
      if (!removed.get(i)) { nowLive(to) = live(i); to += 1 }
      i += 1
    }
    i = 0
    while (i < added.size) { nowLive(kept + i) = end + i; i += 1 }
    if (added.size == 0) new FileTable(table, blocks, starts, nowLive).compacted()
    else new FileTable(table, blocks :+ added, starts :+ end, nowLive).compacted()
  }

  private def indexOfKey(key: String): Int = {
    // The newest block is searched first: an older one may have a dead row of the same key.
    var b = blocks.length - 1
    var i = -1
    while (b >= 0 && i < 0) {
      val row = blocks(b).find(key)
      if (row >= 0) i = java.util.Arrays.binarySearch(live, starts(b) + row)
      b -= 1
    }
    math.max(i, -1)
  }

  private def blockOf(ordinal: Int): Int = {
    val found = java.util.Arrays.binarySearch(starts, ordinal)
    if (found < 0) -found - 2 else found
  }

  /**
   * Merges, from the end, every run of blocks in which one is less than twice as large as those after it together, and
   * all blocks if most rows are dead. Each row is thus copied a logarithmic number of times over the lifetime of the
   * table.
   */
  private def compacted(): FileTable = {
    var first = blocks.length - 1
    var rows = if (first < 0) 0 else blocks(first).size
    while (first > 0 && blocks(first - 1).size < 2 * rows) {
      first -= 1
      rows += blocks(first).size
    }
    if (rowsInMemory > 2 * size + 1024) merged(0)
    else if (first < blocks.length - 1) merged(first)
    else this
  }

  /** Replaces the blocks from `first` on with one block of their live rows. */
  private def merged(first: Int): FileTable = {
    val start = starts(first)
    val found = java.util.Arrays.binarySearch(live, start)
    val from = if (found < 0) -found - 1 else found
    val builder = new FileBlockBuilder(table, size - from)
    var i = from
    while (i < size) {
      val b = blockOf(live(i))
      blocks(b).copyTo(builder, live(i) - starts(b))
      i += 1
    }
    val nowLive = java.util.Arrays.copyOf(live, size)
    i = from
    while (i < size) { nowLive(i) = start + i - from; i += 1 }
    // A block without rows would have the same start as the next one.
    if (from == size) new FileTable(table, blocks.take(first), starts.take(first), nowLive)
    else
      new FileTable(table, blocks.take(first) :+ builder.result(), starts.take(first + 1), nowLive)
  }
}

object FileTable {

  private[replay] def empty(table: Path): FileTable =
    new FileTable(table, Array.empty, Array.empty, Array.empty)

  /** All rows of these blocks, in order. */
  private[deltaic] def of(table: Path, blocks: Seq[FileBlock]): FileTable = {
    val nonEmpty = blocks.filter(_.size > 0).toArray
    val ends = nonEmpty.scanLeft(0)((end, block) => math.addExact(end, block.size))
    new FileTable(table, nonEmpty, ends.init, Array.range(0, ends.last))
  }
}
