package io.deltaic.spark.scan

import java.lang.ref.SoftReference

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration

import io.deltaic.replay.{CheckpointSlice, FileTable}

/**
 * Slices of checkpoints that tasks of this JVM have read, for the queries that follow, together with what those decode of
 * statistics and partition values.
 *
 * Slices come while there is room, and go when nobody has asked for them in a while. None makes room for another: queries
 * ask for the slices of a checkpoint in turn, so of one that is larger than the room, each would leave before its turn
 * comes. The heap takes all of them back before it runs out. Thread safe.
 *
 * @param maxBytes of heap, for all together
 * @param idleNanos how long a slice stays that nobody asks for
 */
private[scan] final class KeptSlices(maxBytes: Long, idleNanos: Long) {
  import KeptSlices._

  private val slices = mutable.HashMap.empty[CheckpointSlice, Slice]

  /** Visits the files of a slice as [[CheckpointSlice.files]] does. */
  def files(slice: CheckpointSlice, conf: Configuration)(visit: FileTable => Unit): Unit =
    kept(slice) match {
      case Some(batches) =>
        batches.foreach(visit)
        keep(slice, batches)
      case None =>
        // Those read so far, none once they are too many.
        var batches = Option(Vector.empty[FileTable])
        slice.files(conf) { batch =>
          visit(batch)
          batches = batches.map(_ :+ batch).filter(mayStay(slice, _))
        }
        batches.foreach(keep(slice, _))
    }

  /** About how many bytes of heap the slices take. */
  def retainedBytes: Long = synchronized(slices.valuesIterator.map(_.bytes).sum)

  private def kept(slice: CheckpointSlice): Option[Vector[FileTable]] = synchronized {
    slices.get(slice).flatMap(s => Option(s.batches.get))
  }

  /** Each query may have decoded more of it, so it is measured anew. */
  private def keep(slice: CheckpointSlice, batches: Vector[FileTable]): Unit = {
    val bytes = bytesOf(batches)
    synchronized {
      slices.remove(slice)
      dropUnused()
      if (retainedBytes + bytes <= maxBytes)
        slices(slice) = new Slice(new SoftReference(batches), bytes, System.nanoTime)
    }
  }

  private def mayStay(slice: CheckpointSlice, batches: Vector[FileTable]): Boolean = {
    val bytes = bytesOf(batches)
    synchronized {
      dropUnused()
      retainedBytes - slices.get(slice).fold(0L)(_.bytes) + bytes <= maxBytes
    }
  }

  private def dropUnused(): Unit = {
    val now = System.nanoTime
    slices.filterInPlace { (_, slice) =>
      slice.batches.get != null && now - slice.askedNanos <= idleNanos
    }
    ()
  }

  private def bytesOf(batches: Vector[FileTable]): Long = batches.iterator.map(_.retainedBytes).sum
}

private[scan] object KeptSlices {

  private val HeapShare = 8
  private val IdleNanos = 10L * 60 * 1000 * 1000 * 1000

  /** Those of this JVM. */
  val shared: KeptSlices = new KeptSlices(Runtime.getRuntime.maxMemory / HeapShare, IdleNanos)

  /** @param askedNanos when a query asked for it last */
  private final class Slice(
      val batches: SoftReference[Vector[FileTable]],
      val bytes: Long,
      val askedNanos: Long
  )
}
