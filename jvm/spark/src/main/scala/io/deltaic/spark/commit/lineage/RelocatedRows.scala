package io.deltaic.spark.commit.lineage

import scala.collection.mutable

import io.deltaic.dv.DeletionVector
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, RemoveFile}

/**
 * Where a commit has moved the rows of the files that it removes, as far as the lineage of the files that it adds
 * tells. Lineage that contradicts the numbers of rows in the log is not used.
 *
 * @param canonical paths are compared by it: writers differ in how they spell them
 * @param numRecords of statistics
 */
private[spark] final class RelocatedRows(
    removes: IndexedSeq[RemoveFile],
    adds: Seq[AddFile],
    canonical: String => String,
    numRecords: Option[String] => Option[Long]
) {
  import RelocatedRows._

  private val inputs: Map[String, Input] = {
    val readded = adds.iterator.map(add => canonical(add.path)).toSet
    val found = for {
      add <- adds
      if !add.dataChange
      lineage <- Lineage.of(add).toSeq
      if numRecords(add.stats).contains(lineage.numRows)
      segment <- segments(add, lineage)
    } yield segment
    found.groupBy(_.input).flatMap { case (position, ofInput) =>
      removes.lift(position).filterNot(r => r.dataChange || readded(canonical(r.path)))
        .flatMap(inputOf(_, ofInput)).map(input => canonical(input.path) -> input)
    }
  }

  private def segments(add: AddFile, lineage: Lineage): Seq[Segment] = {
    val offsets = lineage.inputs.scanLeft(0L)(_ + _._2)
    lineage.inputs.zip(offsets).zipWithIndex.collect { case (((Some(input), count), offset), i) =>
      val from = if (i == 0) lineage.from else 0L
      Segment(input, from, count, add, offset, lineage.vectors.get(input))
    }
  }

  /** None if it is not known where some of the live rows are. */
  private def inputOf(remove: RemoveFile, segments: Seq[Segment]): Option[Input] = {
    val inOrder = segments.sortBy(_.from)
    val ends = inOrder.scanLeft(0L)((_, segment) => segment.from + segment.count)
    val vector = inOrder.head.vector.getOrElse(remove.deletionVector)
    val live = numRecords(remove.stats).map(_ - vector.fold(0L)(_.cardinality))
    Option.when(
      inOrder.map(_.from) == ends.init && live.forall(_ == ends.last) &&
      inOrder.map(_.vector).distinct.size == 1
    )(Input(remove.path, vector, inOrder))
  }

  /** Whether it is known where all live rows of a file are. */
  def areKnown(path: String): Boolean = inputs.contains(canonical(path))

  /** The deletion vector with which a file was read before its rows were moved. */
  def vectorOf(path: String): Option[DeletionVectorDescriptor] = inputs(canonical(path)).vector

  /**
   * The positions of rows in the files that they were moved to.
   *
   * @param vector the loaded [[vectorOf]] the file
   * @param rows positions in the file, none of them in `vector`; all others if it is not given
   */
  def positions(
      path: String,
      vector: DeletionVector,
      rows: Option[DeletionVector]
  ): Map[AddFile, DeletionVector] = {
    val moved = mutable.LinkedHashMap.empty[AddFile, DeletionVector]
    val segments = inputs(canonical(path)).segments
    def vectorOf(add: AddFile): DeletionVector = moved.getOrElseUpdate(add, new DeletionVector)
    rows match {
      case None =>
        segments.filter(_.count > 0).foreach { segment =>
          val into = vectorOf(segment.add)
          (segment.offset until segment.offset + segment.count).foreach(into.add)
        }
      case Some(some) =>
        val (cursor, remaining) = (vector.cursor(), segments.iterator.buffered)
        var (deleted, before) = (cursor.seek(0L), 0L)
        some.forEach { row =>
          while (deleted < row) {
            before += 1
            deleted = cursor.seek(deleted + 1)
          }
          val rank = row - before
          while (remaining.head.from + remaining.head.count <= rank) remaining.next()
          vectorOf(remaining.head.add).add(remaining.head.offset + rank - remaining.head.from)
        }
    }
    moved.toMap
  }
}

private object RelocatedRows {

  /**
   * Consecutive live rows of an input.
   *
   * @param input the position of the input among the `remove`s
   * @param from the number of live rows of the input before them
   * @param offset the position of the first of them in the file
   * @param vector the deletion vector of the input, if it is not that of the `remove`
   */
  private final case class Segment(
      input: Int,
      from: Long,
      count: Long,
      add: AddFile,
      offset: Long,
      vector: Option[Option[DeletionVectorDescriptor]]
  )

  private final case class Input(
      path: String,
      vector: Option[DeletionVectorDescriptor],
      segments: Seq[Segment]
  )
}
