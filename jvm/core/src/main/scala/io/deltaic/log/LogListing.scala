package io.deltaic.log

import scala.annotation.tailrec
import scala.collection.mutable

import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/**
 * The content of the log from a version on.
 *
 * @param first the files of that version: its commit, and those of its checkpoints
 * @param commits the commits after it, ascending
 * @param latest the newest version of any of the files
 * @param checksum the version checksum file of `latest`
 * @param checkpoint the newest checkpoint
 */
final case class LogTail(
    first: Seq[FileStatus],
    commits: Seq[FileStatus],
    latest: Long,
    checksum: Option[FileStatus],
    checkpoint: Option[Checkpoint]
)

/**
 * Determines which files make up a version (Protocol § Checkpoints, § Last Checkpoint File).
 *
 * Callers pass the names of checkpoints that turned out to be unreadable, and the next best files are chosen: another
 * checkpoint of the same version, an older one, or every commit.
 */
final class LogListing(table: Path, store: LogStore) {

  private val directory = FileNames.logDirectory(table)

  /** Whether the log has any commit or checkpoint. */
  def exists: Boolean = store
    .listFrom(directory, FileNames.firstOf(0))
    .exists(file => FileNames.makesATable(file.getPath.getName))

  /** The files of the newest version. */
  def latest(unreadable: Set[String] = Set.empty): LogSegment =
    // The hint only shortens the listing: without a checkpoint where it points, the whole log is listed.
    LastCheckpoint
      .version(directory, store)
      .flatMap(hint => segmentFrom(listed(hint), None, unreadable, wholeLog = false))
      .getOrElse(segmentOrFail(listed(0), None, unreadable))

  /**
   * The files of one version. A log with a gap above that version is refused too: the versions on either side of the
   * gap may belong to different histories.
   */
  def at(version: Long, unreadable: Set[String] = Set.empty): LogSegment =
    LastCheckpoint
      .version(directory, store)
      .filter(_ <= version)
      .flatMap { hint =>
        val log = listed(hint)
        segmentFrom(log, None, Set.empty, wholeLog = false)
          .flatMap(_ => segmentFrom(log, Some(version), unreadable, wholeLog = false))
      }
      .getOrElse {
        val log = listed(0)
        segmentOrFail(log, None, Set.empty)
        segmentOrFail(log, Some(version), unreadable)
      }

  /** Whether the log has a checkpoint of a version, which may replace its commit. */
  def hasCheckpoint(version: Long): Boolean =
    listed(version).newestCheckpoint(version, Set.empty).exists(_.version == version)

  /** The content of the log after a loaded version. */
  def tail(version: Long): LogTail = {
    val log = listed(version)
    LogTail(
      log.commits.get(version).toSeq ++ log.checkpointsOf(version).flatMap(_.files),
      log.commits.valuesIteratorFrom(version + 1).toVector,
      log.latest,
      log.checksums.get(log.latest),
      log.newestCheckpoint(log.latest, Set.empty)
    )
  }

  /** The lowest version that can be reconstructed. */
  def earliestVersion(): Long = {
    val log = listed(0)
    if (log.isEmpty) notATable()
    log.earliest.getOrElse(segmentOrFail(log, None, Set.empty).version)
  }

  /**
   * The commit files of the contiguous range that ends at the latest version, ascending. Empty if that version has only
   * a checkpoint.
   */
  def unbrokenCommits(): Seq[FileStatus] = {
    val log = listed(0)
    if (log.isEmpty) notATable()
    if (log.commits.contains(log.latest)) log.commits.rangeFrom(log.firstUnbroken).values.toVector
    else Nil
  }

  /** All commit files of the log, ascending, including those before a gap. */
  def allCommits(): Seq[FileStatus] = {
    val log = listed(0)
    if (log.isEmpty) notATable()
    log.commits.values.toVector
  }

  /** The commit files below a version, grouped into contiguous ranges: each ascending, the newest range first. */
  def rangesBelow(version: Long): Seq[Seq[FileStatus]] = {
    val below = listed(0).commits.rangeUntil(version).toVector
    below.reverseIterator.foldLeft(List.empty[List[(Long, FileStatus)]]) {
      case (range :: rest, commit) if range.head._1 == commit._1 + 1 => (commit :: range) :: rest
      case (ranges, commit) => List(commit) :: ranges
    }.reverse.map(_.map(_._2))
  }

  /** Whether a version can be reconstructed. */
  def isReachable(version: Long): Boolean =
    try { at(version); true }
    catch { case e: DeltaicThrowable if LogListing.Unreachable(e.condition) => false }

  /** Fails because the commits between two versions are missing. */
  def failOfGap(before: Long, after: Long): Nothing = fail(
    "DELTAIC_LOG_GAP",
    "missing" -> (before + 1).toString,
    "before" -> before.toString,
    "after" -> after.toString
  )

  private def segmentOrFail(
      log: Listed,
      target: Option[Long],
      unreadable: Set[String]
  ): LogSegment = {
    if (log.isEmpty) notATable()
    segmentFrom(log, target, unreadable, wholeLog = true)
      .getOrElse(notFound(log, target.getOrElse(log.latest)))
  }

  /**
   * @param target if None, the newest version in the listing; never an older one because a checkpoint is unreadable
   * @param wholeLog whether the listing began at 0; if not, it cannot prove that a file is missing
   */
  private def segmentFrom(
      log: Listed,
      target: Option[Long],
      unreadable: Set[String],
      wholeLog: Boolean
  ): Option[LogSegment] = {
    val limit = target.getOrElse(log.latest)
    val checkpoint = log.newestCheckpoint(limit, unreadable)
    val first = checkpoint.fold(0L)(_.version + 1)
    val commits = log.commits.iteratorFrom(first).takeWhile(_._1 <= limit).toVector
    val version = commits.lastOption.map(_._1).orElse(checkpoint.map(_.version))
    if (!version.contains(limit)) None
    else if (checkpoint.isEmpty && !wholeLog) None
    else {
      // The log begins later, so only later versions can be reconstructed.
      if (checkpoint.isEmpty && commits.head._1 > 0 && log.earliest.exists(_ > limit))
        notFound(log, limit)
      requireUnbroken(checkpoint, commits.map(_._1), limit)
      Some(
        LogSegment(
          table,
          limit,
          checkpoint,
          commits.map(_._2),
          log.commits.get(limit),
          log.compactions.filter(c => c.first >= first && c.last <= limit).toVector,
          log.checksums.get(limit)
        )
      )
    }
  }

  private def requireUnbroken(
      checkpoint: Option[Checkpoint],
      commits: Seq[Long],
      version: Long
  ): Unit = {
    val start = checkpoint.fold(-1L)(_.version)
    if (checkpoint.isEmpty && commits.headOption.exists(_ > 0)) {
      fail(
        "DELTAIC_LOG_INCOMPLETE",
        "version" -> version.toString,
        "earliest" -> commits.head.toString
      )
    }
    (start +: commits).zip(commits).find { case (before, after) => after != before + 1 }.foreach {
      case (before, after) => failOfGap(before, after)
    }
  }

  private def notATable(): Nothing = fail("DELTAIC_NOT_A_TABLE")

  private def notFound(log: Listed, version: Long): Nothing = fail(
    "DELTAIC_VERSION_NOT_FOUND",
    "version" -> version.toString,
    "earliest" -> log.earliest.getOrElse(log.latest).toString,
    "latest" -> log.latest.toString
  )

  private def fail(condition: String, parameters: (String, String)*): Nothing =
    throw DeltaicException(condition, Map("table" -> table.toString) ++ parameters)

  /**
   * Listing a directory is not atomic: during concurrent commits, it may show a commit and miss the one before. So a
   * log with a gap is listed again, until the same gap has been seen twice: a commit before a listed one existed when
   * the second listing began.
   */
  private def listed(from: Long): Listed = {
    @tailrec def settled(seen: Set[(Long, Long)], left: Int): Listed = {
      val log = new Listed
      store.listFrom(directory, FileNames.firstOf(from)).foreach(log.add)
      val gaps = log.complete().gaps(from).toSet
      if (gaps.isEmpty || gaps.exists(seen) || left == 0) log else settled(seen ++ gaps, left - 1)
    }
    settled(Set.empty, LogListing.Retries)
  }
}

private object LogListing {

  /** The errors for a version that cannot be reconstructed. */
  val Unreachable: Set[String] =
    Set("DELTAIC_VERSION_NOT_FOUND", "DELTAIC_LOG_GAP", "DELTAIC_LOG_INCOMPLETE")

  /** More than one is needed only if commits are written about as fast as they are listed. */
  val Retries = 5
}

/** The result of listing the log directory. */
private[log] final class Listed {
  import FileNames._

  val commits: mutable.TreeMap[Long, FileStatus] = mutable.TreeMap.empty
  val checksums: mutable.Map[Long, FileStatus] = mutable.Map.empty
  val compactions: mutable.ArrayBuffer[Compaction] = mutable.ArrayBuffer.empty

  /** By version; within a version, the preferred ones first. */
  private val checkpoints = mutable.TreeMap.empty[Long, Vector[Checkpoint]]
  private val parts = mutable.Map.empty[(Long, Int), Map[Int, FileStatus]]

  def add(file: FileStatus): Unit = classify(file.getPath.getName) match {
    case Some(CommitName(version)) => commits(version) = file
    case Some(ClassicCheckpointName(version)) if file.getLen > 0 => append(version, Seq(file))
    case Some(UuidCheckpointName(version)) if file.getLen > 0 => append(version, Seq(file))
    case Some(CheckpointPartName(version, part, total)) =>
      parts((version, total)) = parts.getOrElse((version, total), Map.empty).updated(part, file)
    case Some(CompactedName(first, last)) => compactions += Compaction(first, last, file)
    case Some(ChecksumName(version)) => checksums(version) = file
    case _ => ()
  }

  /**
   * A multi-part checkpoint is complete once all its parts exist. Within a version, the UUID-named checkpoints come
   * first, newest first, because no concurrent writer can overwrite them; then the classic one, which is a single file.
   */
  def complete(): Listed = {
    checkpoints.mapValuesInPlace { (_, all) =>
      val (uuid, classic) = all.partition(c => isUuidCheckpoint(c.files.head))
      uuid.sortBy(-_.files.head.getModificationTime) ++ classic
    }
    parts.toSeq.sortBy(_._1).foreach { case ((version, total), found) =>
      if (found.size == total) append(version, (1 to total).map(found))
    }
    this
  }

  private def append(version: Long, files: Seq[FileStatus]): Unit =
    checkpoints(version) =
      checkpoints.getOrElse(version, Vector.empty) :+ Checkpoint(version, files)

  def isEmpty: Boolean = commits.isEmpty && checkpoints.isEmpty

  /** The best checkpoint of the highest version up to a limit, without the unreadable ones. */
  def newestCheckpoint(limit: Long, unreadable: Set[String]): Option[Checkpoint] =
    checkpoints
      .rangeTo(limit)
      .valuesIterator
      .flatMap(_.find(c => !unreadable(c.name)))
      .foldLeft(Option.empty[Checkpoint])((_, newer) => Some(newer))

  def latest: Long =
    (commits.lastOption.map(_._1) ++ checkpoints.lastOption.map(_._1)).maxOption.getOrElse(-1L)

  /**
   * The pairs of versions between which commits are missing that some version may need, in a listing from `from` on. A
   * log that cleanup has shortened up to a checkpoint has no gap: it begins later.
   */
  def gaps(from: Long): Seq[(Long, Long)] = {
    val versions = commits.keysIterator.toVector
    val between = versions.zip(versions.drop(1)).filter { case (before, after) =>
      after != before + 1
    }
    val first = versions.headOption.filter(v => v > from && !checkpoints.rangeFrom(v - 1).nonEmpty)
    val last = checkpoints.lastOption.map(_._1).filter(v => !versions.lastOption.exists(_ >= v))
    first.map(v => (from - 1, v)) ++: between ++: last.map(v => (v - 1, v + 1)).toSeq
  }

  /** The first commit of the contiguous range that ends at the latest commit. */
  def firstUnbroken: Long = {
    val descending = commits.keysIterator.toArray.reverse
    if (descending.isEmpty) latest + 1
    else {
      val broken = descending.indices.drop(1).find(i => descending(i) != descending(i - 1) - 1)
      descending(broken.getOrElse(descending.length) - 1)
    }
  }

  def checkpointsOf(version: Long): Seq[Checkpoint] = checkpoints.getOrElse(version, Vector.empty)

  /** Ascending by version. */
  def allCheckpoints: Seq[Checkpoint] = checkpoints.valuesIterator.flatten.toVector

  /** The lowest version from which the log is complete, if there is one. */
  def earliest: Option[Long] =
    if (firstUnbroken == 0) Some(0L)
    else checkpoints.keysIteratorFrom(firstUnbroken - 1).nextOption()
}
