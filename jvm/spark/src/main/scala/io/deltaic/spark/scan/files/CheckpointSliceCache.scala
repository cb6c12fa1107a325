package io.deltaic.spark.scan.files

import java.lang.ref.SoftReference

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.slf4j.LoggerFactory

import io.deltaic.replay.checkpoint.UnreadableContent
import io.deltaic.replay.{CheckpointSlice, FileTable}

/**
 * Caches the checkpoint slices that tasks of this JVM have read, with the statistics and partition
 * values that queries have decoded from them.
 *
 * A slice is added only if it fits; it never evicts another one. Queries read the slices of a
 * checkpoint in turn, so if a checkpoint were larger than the cache, LRU eviction would remove each
 * slice before its next use. A slice is evicted if no query has used it for a while or if its table
 * has a newer checkpoint. All slices are released before the heap runs out. Thread safe.
 *
 * @param maxBytes maximum heap bytes of all slices, including those that are still being read
 * @param idleNanos how long an unused slice is retained
 * @param nanoTime the clock
 */
private[scan] final class CheckpointSliceCache(
    maxBytes: Long,
    idleNanos: Long,
    nanoTime: () => Long = () => System.nanoTime
) {
  import CheckpointSliceCache._

  private val slices = mutable.HashMap.empty[CheckpointSlice, CachedSlice]

  /**
   * Bytes reserved by tasks that read a slice in order to cache it. If two tasks read the same slice, one caches
   * it.
   */
  private val claims = mutable.HashMap.empty[CheckpointSlice, Long]

  /** Visits the files of a slice as [[CheckpointSlice.files]] does. */
  def files(slice: CheckpointSlice, conf: Configuration)(visit: FileTable => Unit): Unit =
    cached(slice) match {
      case Some(batches) =>
        batches.foreach(visit)
        cache(slice, batches)
      case None if claim(slice) =>
        try read(slice, conf)(visit)
        finally synchronized(claims.remove(slice)): Unit
      case None => slice.files(conf)(visit)
    }

  /** About how many bytes of heap the slices take. */
  def retainedBytes: Long = synchronized(slices.valuesIterator.map(_.bytes).sum)

  private def cached(slice: CheckpointSlice): Option[Vector[FileTable]] = synchronized {
    slices.get(slice).flatMap(s => Option(s.batches.get))
  }

  private def claim(slice: CheckpointSlice): Boolean = synchronized {
    val isFirst = !claims.contains(slice)
    if (isFirst) claims(slice) = 0L
    isFirst
  }

  private def read(slice: CheckpointSlice, conf: Configuration)(visit: FileTable => Unit): Unit = {
    var batches = Vector.empty[FileTable]
    var fits = true
    slice.files(conf) { batch =>
      visit(batch)
      UnreadableContent.rethrowingConsumerErrors {
        if (fits) batches :+= batch
        fits = fits && claimed(slice, bytesOf(batches))
        if (!fits) batches = Vector.empty
      }
    }
    if (fits) UnreadableContent.rethrowingConsumerErrors(cache(slice, batches))
  }

  /** Whether this many bytes of a slice fit into the cache. */
  private def claimed(slice: CheckpointSlice, bytes: Long): Boolean = synchronized {
    dropUnused(slice)
    val fits = bytesBeside(slice) + bytes <= maxBytes
    claims(slice) = if (fits) bytes else 0L
    fits
  }

  /**
   * A query may have decoded more of the slice, so its size is measured again. If it does not fit, the decoded
   * values are dropped.
   */
  private def cache(slice: CheckpointSlice, batches: Vector[FileTable]): Unit =
    if (!cacheIfFits(slice, batches)) {
      batches.foreach(_.forgetDerived())
      cacheIfFits(slice, batches): Unit
    }

  private def cacheIfFits(slice: CheckpointSlice, batches: Vector[FileTable]): Boolean = {
    val bytes = bytesOf(batches)
    synchronized {
      dropUnused(slice)
      val fits = bytesBeside(slice) + bytes <= maxBytes
      if (!fits) slices.remove(slice)
      else {
        if (!slices.contains(slice))
          logger.info("Cached {} bytes for checkpoint slice {}", bytes, slice.path)
        slices(slice) = new CachedSlice(new SoftReference(batches), bytes, nanoTime())
      }
      fits
    }
  }

  private def bytesBeside(slice: CheckpointSlice): Long = {
    val others = slices.iterator.collect { case (other, cached) if other != slice => cached.bytes }
    val claimed = claims.iterator.collect { case (other, bytes) if other != slice => bytes }
    others.sum + claimed.sum
  }

  /** @param requested the slice that a query reads; slices of older checkpoints of its table are dropped */
  private def dropUnused(requested: CheckpointSlice): Unit = {
    val now = nanoTime()
    slices.filterInPlace { (slice, cached) =>
      val isOlder = slice.table == requested.table && slice.version < requested.version
      cached.batches.get != null && now - cached.lastUsedNanos <= idleNanos && !isOlder
    }
    ()
  }

  private def bytesOf(batches: Vector[FileTable]): Long = batches.iterator.map(_.retainedBytes).sum
}

private[scan] object CheckpointSliceCache {

  private val logger = LoggerFactory.getLogger(classOf[CheckpointSliceCache])

  private val HeapShare = 8
  private val IdleNanos = 10L * 60 * 1000 * 1000 * 1000

  /** The cache of this JVM. */
  val shared: CheckpointSliceCache =
    new CheckpointSliceCache(Runtime.getRuntime.maxMemory / HeapShare, IdleNanos)

  /** @param lastUsedNanos when a query last used it */
  private final class CachedSlice(
      val batches: SoftReference[Vector[FileTable]],
      val bytes: Long,
      val lastUsedNanos: Long
  )
}
