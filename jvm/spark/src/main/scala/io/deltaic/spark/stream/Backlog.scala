package io.deltaic.spark.stream

import scala.collection.mutable

import io.deltaic.protocol.DeltaicThrowable

/**
 * Counts what a stream has not read yet, for its progress report. Each commit is counted once, when it is first seen.
 *
 * @param content counts the items of commits
 */
private[stream] final class Backlog[A](content: StreamContent[A]) {
  import Backlog._

  /** The files of commits that have been counted, by version. */
  private val counted = mutable.TreeMap.empty[Long, Files]

  /**
   * The metrics of a stream that has read up to an offset.
   *
   * @param rest the items after the offset in the snapshot or commit that it is in
   * @param next the first commit after those
   * @param latest the latest version of the table
   */
  def metrics(rest: Iterable[A], next: Long, latest: Long): Map[String, String] = {
    counted --= counted.keysIterator.takeWhile(_ < next).toVector
    val commits = (latest - next + 1).max(0L)
    val ofCommits = Map("numCommitsOutstanding" -> commits.toString)
    if (commits > MaxCounted || !count(next, latest)) ofCommits
    else {
      val files = (counted.rangeFrom(next).valuesIterator ++ Iterator.single(filesOf(rest)))
        .foldLeft(Files(0L, 0L))(_ + _)
      ofCommits ++ Map(
        "numFilesOutstanding" -> files.number.toString,
        "numBytesOutstanding" -> files.sizeBytes.toString
      )
    }
  }

  /** Whether all of these commits could be counted. A commit that the stream cannot read fails its batch instead. */
  private def count(next: Long, latest: Long): Boolean =
    try {
      val first = counted.lastOption.fold(next)(_._1 + 1)
      content.commits(first, latest).foreach { case (commit, timestampMs) =>
        counted(commit.version) = filesOf(content.ofCommit(commit, timestampMs))
      }
      true
    } catch {
      case _: DeltaicThrowable => false
    }

  private def filesOf(items: Iterable[A]): Files =
    Files(
      items.iterator.map(content.numFiles(_).toLong).sum,
      items.iterator.map(content.sizeBytes).sum
    )
}

private object Backlog {

  /** The files of more commits are not counted: it would take as long as to read them. */
  private val MaxCounted = 1000L

  private final case class Files(number: Long, sizeBytes: Long) {
    def +(other: Files): Files = Files(number + other.number, sizeBytes + other.sizeBytes)
  }
}
