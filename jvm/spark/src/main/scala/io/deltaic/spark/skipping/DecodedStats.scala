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
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.deltaic.log.DaemonThread
import io.deltaic.replay.FileBlock
import io.deltaic.spark.schema.{LeafColumn, PartitionColumn}

/**
 * The decoded partition values and statistics of a fixed group of files, such as a [[FileBlock]],
 * independent of the schema of a query.
 *
 * Columns are decoded when a predicate first needs them and cached from then on: partition values
 * for all files at once, statistics for blocks of 64 files, so that a query with few files left
 * after partition pruning decodes few statistics. Thread safe; large amounts are decoded on several
 * threads of its own.
 *
 * @param parsePartitionValue called once for each distinct value of a partition column
 */
final private[skipping] class DecodedStats(
    source: FileStatsSource,
    parsePartitionValue: PartitionValueParser
) extends FileBlock.Derived {
  import DecodedStats._

  val size: Int = source.size
  private val blocks = (size + BlockSize - 1) / BlockSize
  private val totals = new FileTotals(size)
  private val leaves = mutable.HashMap.empty[LeafColumn, LeafStats]
  private val partitions = new ConcurrentHashMap[PartitionColumn, PartitionValueColumn]

  /** Updated while `leaves` is locked, so that it can be read without the lock. */
  @volatile private var statsBytes = totals.retainedBytes

  def numRecords(i: Int): Option[Long] = {
    readStats(Set.empty, Array(i))
    if (totals.numRecords.isNullAt(i)) None else Some(totals.numRecords.long(i))
  }

  def tightBounds(i: Int): Boolean = {
    readStats(Set.empty, Array(i))
    if (totals.tightBounds.isNullAt(i)) !source.hasDeletionVector(i)
    else totals.tightBounds.boolean(i)
  }

  /** One column for each field. Statistics are decoded only for `files`. */
  def columns(fields: Seq[FileField], files: Array[Int]): Array[FileColumn] = {
    val needed = fields.collect {
      case FileField.Min(leaf) => leaf
      case FileField.Max(leaf) => leaf
      case FileField.NullCount(leaf) => leaf
    }.toSet
    val stats =
      if (needed.isEmpty && !fields.contains(FileField.NumRecords)) Map.empty[LeafColumn, LeafStats]
      else readStats(needed, files)
    fields.map[FileColumn] {
      case FileField.NumRecords => totals.numRecords
      case FileField.NullCount(leaf) => stats(leaf).nullCount
      case FileField.Min(leaf) => stats(leaf).min
      case FileField.Max(leaf) => stats(leaf).max
      case FileField.Partition(column) => partitions.computeIfAbsent(column, readPartition(_))
    }.toArray
  }

  /**
   * Excludes statistics that are currently being decoded. Every load of a table calls this for all cached tables,
   * so it takes no lock.
   */
  override def retainedBytes: Long =
    statsBytes + partitions.values.asScala.iterator.map(_.retainedBytes).sum

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
    new PartitionValueColumn(values, parsed.values.asScala.toSeq)
  }

  /** A value that cannot be parsed is an error only for queries that need it. */
  private def parse(stored: String, column: PartitionColumn): AnyRef =
    try parsePartitionValue.parse(stored, column.dataType, column.logName).asInstanceOf[AnyRef]
    catch { case NonFatal(e) => UnreadableValue(e) }

  /**
   * Decodes the missing statistics of `files`.
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
        val missingLeaves = stats.values.filterNot(_.decodedBlocks.get(block)).map(_.leaf).toSet
        (totals.decodedBlocks.get(block), missingLeaves)
      }
      groups.foreach { case ((totalsRead, missingLeaves), inBlocks) =>
        if (!totalsRead || missingLeaves.nonEmpty) {
          val missingTotals = if (totalsRead) None else Some(totals)
          readBlocks(new StatsJson(missingTotals, missingLeaves.toSeq.map(stats)), inBlocks)
          inBlocks.foreach(totals.decodedBlocks.set)
          missingLeaves.foreach(l => inBlocks.foreach(stats(l).decodedBlocks.set))
          statsBytes = totals.retainedBytes + leaves.valuesIterator.map(_.retainedBytes).sum
        }
      }
      stats
    }

  private def blocksOf(files: Array[Int]): Array[Int] = {
    val seen = new BitSet(blocks)
    files.foreach(i => seen.set(i / BlockSize))
    seen.stream().toArray
  }

  private def readBlocks(json: StatsJson, missing: Array[Int]): Unit =
    if (missing.length * BlockSize <= FilesForOneThread) missing.foreach(readBlock(json, _))
    else {
      val tasks = missing.grouped(BlocksInTask).map { task =>
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

private object DecodedStats {

  /** The files of one word of [[MutableFileColumn]]: threads share no block. */
  private val BlockSize = 64
  private val BlocksInTask = 64
  private val FilesForOneThread = 10000

  /** At most 8 threads for all snapshots of the process; idle threads terminate. */
  private val Pool: ThreadPoolExecutor = {
    val threads = math.min(8, Runtime.getRuntime.availableProcessors)
    val pool = new ThreadPoolExecutor(
      threads,
      threads,
      10,
      TimeUnit.SECONDS,
      new LinkedBlockingQueue[Runnable],
      (task: Runnable) => DaemonThread(task, "deltaic-file-statistics")
    )
    pool.allowCoreThreadTimeOut(true)
    pool
  }

  /**
   * Returns, or throws the exception of a task, after all tasks have finished: none may write after
   * the lock is released. An interrupt is therefore restored afterwards.
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
