package io.deltaic.replay

import java.time.Instant

import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.log._
import io.deltaic.protocol._

/**
 * When each commit of a table happened.
 *
 * The modification time of a commit file is that of a clock that may step back, or of a copy. Times must ascend with
 * versions for time travel to be well-defined, so a commit that seems no newer than the one before is taken to be one
 * millisecond newer. In-commit timestamps ascend by themselves, from the version on that enabled them.
 *
 * @param commits commit files ascending, without a gap; none of a log that holds only a checkpoint, whose versions have no
 *   times
 */
private[replay] final class CommitTimes(
    table: Path,
    reader: CommitReader,
    val commits: Seq[FileStatus],
    protocol: Protocol,
    metadata: Metadata
) {

  lazy val firstVersion: Long = FileNames.versionOf(commits.head)

  /** The same of other commits of the table. */
  def ofOther(others: Seq[FileStatus]): CommitTimes =
    new CommitTimes(table, reader, others, protocol, metadata)

  private val inCommitFrom: Long = CommitTimes.inCommitFrom(protocol, metadata)

  private val byFile: Array[Long] = CommitTimes.ofFiles(commits)

  def timeMs(version: Long): Long = timeMs(version, None)

  /** As [[timeMs]], for when the commitInfo is at hand. */
  def timeMs(version: Long, commitInfo: Option[CommitInfo]): Long = {
    val i = (version - firstVersion).toInt
    if (version < inCommitFrom) byFile(i)
    else {
      commitInfo
        .orElse(reader.readCommitInfo(version, commits(i)))
        .flatMap(_.inCommitTimestampMs)
        .getOrElse(byFile(i))
    }
  }

  /** Whether all versions from `earliest` on were committed after that time. */
  def isBefore(timestampMs: Long, earliest: Long): Boolean =
    firstInCommit(timestampMs, earliest).isEmpty && timestampMs < timeMs(earliest)

  /**
   * From where on in-commit timestamps decide, unless the time is before those. They are asked first: the files of a
   * log that was copied are younger than its commits.
   */
  private def firstInCommit(timestampMs: Long, earliest: Long): Option[Long] =
    Some(math.max(inCommitFrom, earliest)).filter(v => v <= latest && timestampMs >= timeMs(v))

  def latest: Long = firstVersion + commits.size - 1

  /** The newest version from `earliest` on that was committed at that time or before. */
  def versionAt(timestampMs: Long, earliest: Long): Long = {
    if (timestampMs > timeMs(latest)) {
      fail(
        "DELTAIC_TIMESTAMP_AFTER_LATEST",
        timestampMs,
        latest,
        "earliestTimestamp" -> text(timeMs(earliest))
      )
    }
    foundAt(timestampMs, earliest).getOrElse(
      fail(
        "DELTAIC_TIMESTAMP_BEFORE_EARLIEST",
        timestampMs,
        earliest,
        "latestTimestamp" -> text(timeMs(latest))
      )
    )
  }

  private def foundAt(timestampMs: Long, earliest: Long): Option[Long] =
    firstInCommit(timestampMs, earliest) match {
      case Some(first) => Some(search(timestampMs, first, latest))
      // Writers must make in-commit timestamps ascend. Where one did not, a later version may be the older one.
      case None if timestampMs < timeMs(earliest) =>
        Some(search(timestampMs, earliest, latest))
          .filter(v => v >= inCommitFrom && timeMs(v) <= timestampMs)
      case None =>
        val last = math.max(inCommitFrom, earliest) - 1
        Some(search(timestampMs, earliest, math.min(last, latest)))
    }

  /** The oldest version that was committed at that time or after, one above the latest when there is none. */
  def versionFrom(timestampMs: Long): Long =
    if (timestampMs > timeMs(latest)) latest + 1
    else if (isBefore(timestampMs, firstVersion)) firstVersion
    else {
      val before = versionAt(timestampMs, firstVersion)
      if (timeMs(before) >= timestampMs) before else before + 1
    }

  /** The newest version in the range, both ends inclusive, that is not after the time; the first one is not. */
  private def search(timestampMs: Long, first: Long, last: Long): Long = {
    var low = first
    var high = last
    while (low < high) {
      val middle = low + (high - low + 1) / 2
      if (timeMs(middle) <= timestampMs) low = middle else high = middle - 1
    }
    low
  }

  private def fail(
      condition: String,
      timestampMs: Long,
      version: Long,
      other: (String, String)
  ): Nothing = throw DeltaicException(
    condition,
    Map(
      "table" -> table.toString,
      "timestamp" -> text(timestampMs),
      "version" -> version.toString,
      "versionTimestamp" -> text(timeMs(version)),
      other
    )
  )

  private def text(timestampMs: Long): String = Instant.ofEpochMilli(timestampMs).toString
}

private[replay] object CommitTimes {

  /** The version from which on in-commit timestamps say when a commit happened. */
  def inCommitFrom(protocol: Protocol, metadata: Metadata): Long =
    if (TableFeatures.isActive(protocol, metadata, "inCommitTimestamp"))
      metadata.configuration.get("delta.inCommitTimestampEnablementVersion")
        .flatMap(_.toLongOption).getOrElse(0L)
    else Long.MaxValue

  /** Modification times, made to ascend. */
  def ofFiles(commits: Seq[FileStatus]): Array[Long] = {
    val times = commits.map(_.getModificationTime).toArray
    (1 until times.length).foreach(i => times(i) = math.max(times(i), times(i - 1) + 1))
    times
  }
}
