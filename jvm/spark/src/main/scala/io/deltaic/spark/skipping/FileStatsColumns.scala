package io.deltaic.spark.skipping

import java.util.concurrent.{
  ConcurrentHashMap,
  ExecutionException,
  Future,
  LinkedBlockingQueue,
  ThreadPoolExecutor,
  TimeUnit
}
import java.util.{BitSet, HashMap => JHashMap}

import scala.collection.mutable
import scala.util.control.NonFatal

/**
 * The partition values and statistics of a set of files, as typed columns.
 *
 * Keep one for each snapshot. Columns are read when a predicate first needs them and kept from then
 * on: partition values for all files at once, statistics for blocks of 64 files, so that a query
 * which partition values have narrowed to few files reads the statistics of few. Safe for use by
 * several threads; large amounts are read by several of its own.
 *
 * @param parsePartitionValue called once for each distinct value of a partition column
 */
final class FileStatsColumns(
    source: FileStatsSource,
    val schema: SkippingSchema,
    parsePartitionValue: PartitionValueParser
) {
  import FileStatsColumns._

  val size: Int = source.size
  private val blocks = (size + BlockSize - 1) / BlockSize
  private val totals = new FileTotals(size)
  private val leaves = mutable.HashMap.empty[LeafColumn, LeafStats]
  private val partitions = new ConcurrentHashMap[PartitionColumn, PartitionValueColumn]

  /**
   * The number of records in the data file, deleted ones included; None when the file does not say.
   */
  def numRecords(i: Int): Option[Long] = {
    readStats(Set.empty, Array(i))
    if (totals.numRecords.isNullAt(i)) None else Some(totals.numRecords.long(i))
  }

  /**
   * Whether bounds are values of the file, not only limits. Choosing files needs no more than
   * limits, but whoever answers MIN or MAX from statistics does. A file that does not say is tight
   * unless it has a deletion vector.
   */
  def tightBounds(i: Int): Boolean = {
    readStats(Set.empty, Array(i))
    if (totals.tightBounds.isNullAt(i)) !source.hasDeletionVector(i)
    else totals.tightBounds.boolean(i)
  }

  /**
   * A row whose columns are `fields`. Statistics are there for `files` alone, in ascending order.
   */
  private[skipping] def row(fields: Seq[FileField], files: Array[Int]): FileRow = {
    val needed = fields.collect {
      case FileField.Min(leaf) => leaf
      case FileField.Max(leaf) => leaf
      case FileField.NullCount(leaf) => leaf
    }.toSet
    val stats =
      if (needed.isEmpty && !fields.contains(FileField.NumRecords)) Map.empty[LeafColumn, LeafStats]
      else readStats(needed, files)
    new FileRow(fields.map {
      case FileField.NumRecords => totals.numRecords
      case FileField.NullCount(leaf) => stats(leaf).nullCount
      case FileField.Min(leaf) => stats(leaf).min
      case FileField.Max(leaf) => stats(leaf).max
      case FileField.Partition(column) => partitions.computeIfAbsent(column, readPartition(_))
    }.toArray)
  }

  private def readPartition(column: PartitionColumn): PartitionValueColumn = {
    val parsed = new JHashMap[String, AnyRef]
    val values = new Array[AnyRef](size)
    var i = 0
    while (i < size) {
      val stored = source.partitionValue(i, column.logName)
      if (stored != null) {
        values(i) = parsed.computeIfAbsent(stored, parse(_, column))
      }
      i += 1
    }
    new PartitionValueColumn(values)
  }

  /** A value that cannot be read is an error of those queries alone that cannot do without it. */
  private def parse(stored: String, column: PartitionColumn): AnyRef =
    try parsePartitionValue.parse(stored, column.dataType, column.logName).asInstanceOf[AnyRef]
    catch { case NonFatal(e) => UnreadableValue(e) }

  /**
   * Reads what is missing of the statistics of `files`.
   *
   * The lock is held while reading, so that two queries never read the same statistics, and what
   * one thread has read is seen by the next.
   */
  private def readStats(needed: Set[LeafColumn], files: Array[Int]): Map[LeafColumn, LeafStats] =
    leaves.synchronized {
      val stats =
        needed.iterator.map(l => l -> leaves.getOrElseUpdate(l, new LeafStats(l, size))).toMap
      val wanted = blocksOf(files)
      val groups = wanted.groupBy { block =>
        val unreadLeaves = stats.values.filterNot(_.decodedBlocks.get(block)).map(_.leaf).toSet
        (totals.decodedBlocks.get(block), unreadLeaves)
      }
      groups.foreach { case ((totalsRead, unreadLeaves), inBlocks) =>
        if (!totalsRead || unreadLeaves.nonEmpty) {
          val unreadTotals = if (totalsRead) None else Some(totals)
          readBlocks(new StatsJson(unreadTotals, unreadLeaves.toSeq.map(stats)), inBlocks)
          inBlocks.foreach(totals.decodedBlocks.set)
          unreadLeaves.foreach(l => inBlocks.foreach(stats(l).decodedBlocks.set))
        }
      }
      stats
    }

  private def blocksOf(files: Array[Int]): Array[Int] = {
    val seen = new BitSet(blocks)
    files.foreach(i => seen.set(i / BlockSize))
    seen.stream().toArray
  }

  private def readBlocks(json: StatsJson, unread: Array[Int]): Unit =
    if (unread.length * BlockSize <= FilesForOneThread) unread.foreach(readBlock(json, _))
    else {
      val tasks = unread.grouped(BlocksInTask).map { task =>
        Pool.submit((() => task.foreach(readBlock(json, _))): Runnable)
      }
      awaitAll(tasks.toVector)
    }

  private def readBlock(json: StatsJson, block: Int): Unit = {
    val end = math.min(size, (block + 1) * BlockSize)
    var i = block * BlockSize
    while (i < end) {
      val stats = source.stats(i)
      if (stats != null) json.read(stats, i)
      i += 1
    }
  }
}

private object FileStatsColumns {

  /** The files of one word of [[MutableFileColumn]]: threads share no block. */
  private val BlockSize = 64
  private val BlocksInTask = 64
  private val FilesForOneThread = 10000

  /** At most 8 threads for all snapshots of the process; they end when they have nothing to do. */
  private val Pool: ThreadPoolExecutor = {
    val threads = math.min(8, Runtime.getRuntime.availableProcessors)
    val pool = new ThreadPoolExecutor(
      threads,
      threads,
      10,
      TimeUnit.SECONDS,
      new LinkedBlockingQueue[Runnable],
      (task: Runnable) => {
        val thread = new Thread(task, "deltaic-file-statistics")
        thread.setDaemon(true)
        thread
      }
    )
    pool.allowCoreThreadTimeOut(true)
    pool
  }

  /**
   * Returns, or throws what a task threw, when no task runs any more: none may write after the lock
   * is given up. So an interrupt is kept for later.
   */
  private def awaitAll(tasks: Vector[Future[_]]): Unit = {
    var interrupted = false
    val failures = tasks.flatMap { task =>
      var failure: Option[Throwable] = None
      var waiting = true
      while (waiting)
        try {
          task.get()
          waiting = false
        } catch {
          case e: ExecutionException =>
            failure = Some(e.getCause)
            waiting = false
          case _: InterruptedException => interrupted = true
        }
      failure
    }
    if (interrupted) Thread.currentThread.interrupt()
    failures.headOption.foreach(throw _)
  }
}
