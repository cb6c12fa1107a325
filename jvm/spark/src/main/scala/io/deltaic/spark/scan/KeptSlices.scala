package io.deltaic.spark.scan

import java.lang.ref.SoftReference

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.slf4j.LoggerFactory

import io.deltaic.replay.{CheckpointSlice, FileTable, UnreadableContent}

/**
 * Slices of checkpoints that tasks of this JVM have read, for the queries that follow, together with what those decode of
 * statistics and partition values.
 *
 * Slices come while there is room. None makes room for another: queries ask for the slices of a checkpoint in turn, so of
 * one that is larger than the room, each would leave before its turn comes. Those leave that no query has asked for in a
 * while, or whose table has a newer checkpoint, and all of them before the heap runs out. Thread safe.
 *
 * @param maxBytes of heap, for all together, those included that are still being read
 * @param idleNanos how long a slice may stay that nobody asks for
 * @param nanoTime what time it is
 */
private[scan] final class KeptSlices(
    maxBytes: Long,
    idleNanos: Long,
    nanoTime: () => Long = () => System.nanoTime
) {
  import KeptSlices._

  private val slices = mutable.HashMap.empty[CheckpointSlice, Kept]

  /** What tasks hold of slices that they are reading, to keep them. Of two that read the same slice, one keeps it. */
  private val claims = mutable.HashMap.empty[CheckpointSlice, Long]

  /** Visits the files of a slice as [[CheckpointSlice.files]] does. */
  def files(slice: CheckpointSlice, conf: Configuration)(visit: FileTable => Unit): Unit =
    kept(slice) match {
      case Some(batches) =>
        batches.foreach(visit)
        keep(slice, batches)
      case None if claim(slice) =>
        try read(slice, conf)(visit)
        finally synchronized(claims.remove(slice)): Unit
      case None => slice.files(conf)(visit)
    }

  /** About how many bytes of heap the slices take. */
  def retainedBytes: Long = synchronized(slices.valuesIterator.map(_.bytes).sum)

  private def kept(slice: CheckpointSlice): Option[Vector[FileTable]] = synchronized {
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
      UnreadableContent.notIn {
        if (fits) batches :+= batch
        fits = fits && claimed(slice, bytesOf(batches))
        if (!fits) batches = Vector.empty
      }
    }
    if (fits) UnreadableContent.notIn(keep(slice, batches))
  }

  /** Whether there is room for so much of a slice. */
  private def claimed(slice: CheckpointSlice, bytes: Long): Boolean = synchronized {
    dropUnused(slice)
    val fits = bytesBeside(slice) + bytes <= maxBytes
    claims(slice) = if (fits) bytes else 0L
    fits
  }

  /** Each query may have decoded more of it, so it is measured anew. What there is no room for is what was decoded. */
  private def keep(slice: CheckpointSlice, batches: Vector[FileTable]): Unit =
    if (!keepIfFits(slice, batches)) {
      batches.foreach(_.forgetDerived())
      keepIfFits(slice, batches): Unit
    }

  private def keepIfFits(slice: CheckpointSlice, batches: Vector[FileTable]): Boolean = {
    val bytes = bytesOf(batches)
    synchronized {
      dropUnused(slice)
      val fits = bytesBeside(slice) + bytes <= maxBytes
      if (!fits) slices.remove(slice)
      else {
        if (!slices.contains(slice))
          logger.info("{} bytes of heap keep what was read of {}", bytes, slice.path)
        slices(slice) = new Kept(new SoftReference(batches), bytes, nanoTime())
      }
      fits
    }
  }

  private def bytesBeside(slice: CheckpointSlice): Long = {
    val others = slices.iterator.collect { case (other, kept) if other != slice => kept.bytes }
    val claimed = claims.iterator.collect { case (other, bytes) if other != slice => bytes }
    others.sum + claimed.sum
  }

  /** @param asked what a query is asking for, and no older checkpoint of its table */
  private def dropUnused(asked: CheckpointSlice): Unit = {
    val now = nanoTime()
    slices.filterInPlace { (slice, kept) =>
      val isOlder = slice.table == asked.table && slice.version < asked.version
      kept.batches.get != null && now - kept.askedNanos <= idleNanos && !isOlder
    }
    ()
  }

  private def bytesOf(batches: Vector[FileTable]): Long = batches.iterator.map(_.retainedBytes).sum
}

private[scan] object KeptSlices {

  private val logger = LoggerFactory.getLogger(classOf[KeptSlices])

  private val HeapShare = 8
  private val IdleNanos = 10L * 60 * 1000 * 1000 * 1000

  /** Those of this JVM. */
  val shared: KeptSlices = new KeptSlices(Runtime.getRuntime.maxMemory / HeapShare, IdleNanos)

  /** @param askedNanos when a query asked for it last */
  private final class Kept(
      val batches: SoftReference[Vector[FileTable]],
      val bytes: Long,
      val askedNanos: Long
  )
}
