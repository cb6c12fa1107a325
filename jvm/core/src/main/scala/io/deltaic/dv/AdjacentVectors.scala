package io.deltaic.dv

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.fs.Path

import io.deltaic.protocol.DeletionVectorDescriptor

/**
 * Deletion vectors that are fetched by one read of a file.
 *
 * @param start where the read starts, inclusive
 * @param end where it ends, exclusive
 * @param ordinals their indexes in the requested sequence, in file order
 */
private[dv] final case class AdjacentVectors(
    file: Path,
    start: Long,
    end: Long,
    ordinals: Seq[Int]
)

private[dv] object AdjacentVectors {

  /**
   * Unneeded bytes that are read to save a request; reading them takes about as long as a request.
   */
  val MaxGapBytes: Long = 64L << 10

  /** Above this size a separate request is relatively cheap. The limit bounds a task's memory. */
  val MaxReadBytes: Long = 8L << 20

  /**
   * Groups the vectors that are stored in files into reads; vectors without a file are left out.
   */
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
