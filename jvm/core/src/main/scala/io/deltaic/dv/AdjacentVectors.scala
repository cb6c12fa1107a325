package io.deltaic.dv

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.DeletionVectorDescriptor

/**
 * Vectors that one read of a file fetches.
 *
 * @param start where the read starts, inclusive
 * @param end where it ends, exclusive
 * @param ordinals which ones, by their place among those asked for, in the order of the file
 */
private[dv] final case class AdjacentVectors(
    file: Path,
    start: Long,
    end: Long,
    ordinals: Seq[Int]
)

private[dv] object AdjacentVectors {

  /** Bytes that are read for nothing when that saves a request; about what one takes to answer. */
  val MaxGapBytes: Long = 64L << 10

  /** Beyond this a request of its own costs little, and what a task holds at once stays small. */
  val MaxReadBytes: Long = 8L << 20

  /** Cuts the vectors that are in files into reads; vectors that name no file are left out. */
  def runs(table: Path, vectors: Seq[DeletionVectorDescriptor]): Seq[AdjacentVectors] = {
    val placed = vectors.zipWithIndex.flatMap { case (vector, i) =>
      if (vector.isInline) None
      else vector.file(table).toOption.map(file => one(file, vector, i))
    }
    placed.groupBy(_.file).values.flatMap(group => merged(group.sortBy(_.start))).toSeq
  }

  private def one(file: Path, vector: DeletionVectorDescriptor, ordinal: Int): AdjacentVectors = {
    val offset = vector.offset.getOrElse(DeletionVectorStore.FirstOffset).toLong
    val start = if (offset <= DeletionVectorStore.FreeReadBytes) 0L else offset
    val end = offset + DeletionVectorStore.FrameOverheadBytes + vector.sizeBytes
    AdjacentVectors(file, start, end, Seq(ordinal))
  }

  private def merged(ascending: Seq[AdjacentVectors]): Seq[AdjacentVectors] = {
    val runs = ArrayBuffer.empty[AdjacentVectors]
    ascending.foreach { next =>
      runs.lastOption match {
        case Some(run)
            if next.start - run.end <= MaxGapBytes && next.end - run.start <= MaxReadBytes =>
          val both = run.copy(end = run.end.max(next.end), ordinals = run.ordinals ++ next.ordinals)
          runs(runs.length - 1) = both
        case _ => runs += next
      }
    }
    runs.toSeq
  }
}
