package io.deltaic.replay

import java.time.Instant

import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.log._
import io.deltaic.protocol._

/**
 * The time of each commit of a table.
 *
 * The modification time of a commit file may come from a clock that stepped back, or from a copy. Time travel requires
 * that times ascend with versions, so a commit that is not newer than the one before is treated as one millisecond
 * newer. In-commit timestamps ascend anyway, from the version that enabled them.
 *
 * @param commits commit files ascending, without a gap; empty for a log with only a checkpoint, whose versions have no
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

  /** The times of other commits of the table. */
  def forCommits(others: Seq[FileStatus]): CommitTimes =
    new CommitTimes(table, reader, others, protocol, metadata)

  private val inCommitFrom: Long = CommitTimes.inCommitFrom(protocol, metadata)

  private val byFile: Array[Long] = CommitTimes.ofFiles(commits)

  def timeMs(version: Long): Long = timeMs(version, None)

  /** As [[timeMs]], if the commitInfo has been read already. */
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

  /** Whether all versions from `earliest` on were committed after the timestamp. */
  def isBefore(timestampMs: Long, earliest: Long): Boolean =
    firstInCommit(timestampMs, earliest).isEmpty && timestampMs < timeMs(earliest)

  /**
   * The first version whose in-commit timestamp is used, unless the timestamp is before it. In-commit timestamps are
   * searched first: the files of a copied log are younger than its commits.
   */
  private def firstInCommit(timestampMs: Long, earliest: Long): Option[Long] =
    Some(math.max(inCommitFrom, earliest)).filter(v => v <= latest && timestampMs >= timeMs(v))

  def latest: Long = firstVersion + commits.size - 1

  /** The newest version from `earliest` on that was committed at or before the timestamp. */
  def versionAt(timestampMs: Long, earliest: Long): Long = {
    if (timestampMs > timeMs(latest)) {
      fail(
        "DELTAIC_TIMESTAMP_AFTER_LATEST",
        timestampMs,
        latest,
        "earliestTimestamp" -> formatted(timeMs(earliest))
      )
    }
    foundAt(timestampMs, earliest).getOrElse(
      fail(
        "DELTAIC_TIMESTAMP_BEFORE_EARLIEST",
        timestampMs,
        earliest,
        "latestTimestamp" -> formatted(timeMs(latest))
      )
    )
  }

  private def foundAt(timestampMs: Long, earliest: Long): Option[Long] =
    firstInCommit(timestampMs, earliest) match {
      case Some(first) => Some(search(timestampMs, first, latest))
      // Writers must make in-commit timestamps ascend. If one did not, a later version may have an older timestamp.
      case None if timestampMs < timeMs(earliest) =>
        Some(search(timestampMs, earliest, latest))
          .filter(v => v >= inCommitFrom && timeMs(v) <= timestampMs)
      case None =>
        val last = math.max(inCommitFrom, earliest) - 1
        Some(search(timestampMs, earliest, math.min(last, latest)))
    }

  /** The oldest version that was committed at or after the timestamp; the latest version plus one if there is none. */
  def versionFrom(timestampMs: Long): Long =
    if (timestampMs > timeMs(latest)) latest + 1
    else if (isBefore(timestampMs, firstVersion)) firstVersion
    else {
      val before = versionAt(timestampMs, firstVersion)
      if (timeMs(before) >= timestampMs) before else before + 1
    }

  /**
   * The newest version in the range, both ends inclusive, that is not after the timestamp. The first one must not be
   * after it.
   */
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
      "timestamp" -> formatted(timestampMs),
      "version" -> version.toString,
      "versionTimestamp" -> formatted(timeMs(version)),
      other
    )
  )

  private def formatted(timestampMs: Long): String = Instant.ofEpochMilli(timestampMs).toString
}

private[replay] object CommitTimes {

  /** The version from which on commits have in-commit timestamps. */
  def inCommitFrom(protocol: Protocol, metadata: Metadata): Long =
    if (TableFeatures.isActive(protocol, metadata, "inCommitTimestamp"))
      metadata.configuration.get("delta.inCommitTimestampEnablementVersion")
        .flatMap(_.toLongOption).getOrElse(0L)
    else Long.MaxValue

  /** Modification times, adjusted to ascend. */
  def ofFiles(commits: Seq[FileStatus]): Array[Long] = {
    val times = commits.map(_.getModificationTime).toArray
    (1 until times.length).foreach(i => times(i) = math.max(times(i), times(i - 1) + 1))
    times
  }
}
