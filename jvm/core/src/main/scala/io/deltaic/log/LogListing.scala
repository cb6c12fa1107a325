package io.deltaic.log

import scala.collection.mutable

import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.protocol.{ActionJson, DeltaicException, TableFeatures}

/** A checkpoint all of whose files are there. */
final case class Checkpoint(version: Long, files: Seq[FileStatus])

/**
 * The files that make one version: a checkpoint, if any, and every commit after it, without a gap.
 *
 * @param version the version they make
 * @param commits ascending, from the version after the checkpoint, or from 0
 * @param lastCommit the commit file of `version`; absent when cleanup left only its checkpoint
 */
final case class LogSegment(
    table: Path,
    version: Long,
    checkpoint: Option[Checkpoint],
    commits: Seq[FileStatus],
    lastCommit: Option[FileStatus]
) {
  def files: Seq[FileStatus] = checkpoint.toSeq.flatMap(_.files) ++ commits
}

/** Finds out which files make a version (Protocol § Checkpoints, § Last Checkpoint File). */
final class LogListing(table: Path, store: LogStore) {

  private val directory = FileNames.logDirectory(table)

  /** Whether the log holds any commit or checkpoint. */
  def exists: Boolean = store
    .listFrom(directory, FileNames.firstOf(0))
    .exists(f => FileNames.classify(f.getPath.getName).isDefined)

  /** The files of the newest version. */
  def latest(): LogSegment =
    // The hint is only worth a shorter listing: without a checkpoint where it points, the whole log is read.
    hintedVersion
      .flatMap(hint => segmentFrom(listed(hint), None, wholeLog = false))
      .getOrElse(segmentOrFail(listed(0), None))

  /**
   * The files of one version. A log with a gap above it is refused all the same: nobody can tell whether the versions on
   * either side of the gap are of one history.
   */
  def at(version: Long): LogSegment =
    hintedVersion
      .filter(_ <= version)
      .flatMap { hint =>
        val log = listed(hint)
        segmentFrom(log, None, wholeLog = false)
          .flatMap(_ => segmentFrom(log, Some(version), wholeLog = false))
      }
      .getOrElse {
        val log = listed(0)
        segmentOrFail(log, None)
        segmentOrFail(log, Some(version))
      }

  /** Every commit file from a version on, ascending. */
  def commitsFrom(version: Long): Seq[FileStatus] = listed(version).commits.values.toVector

  /** The lowest version that can be reconstructed. */
  def earliestVersion(): Long = {
    val log = listed(0)
    if (log.isEmpty) notATable()
    log.earliest.getOrElse(segmentOrFail(log, None).version)
  }

  /** Commit files of the whole log that belong to the unbroken row ending at the latest version, ascending. */
  def unbrokenCommits(): Seq[FileStatus] = {
    val log = listed(0)
    if (log.isEmpty) notATable()
    log.commits.rangeFrom(log.firstUnbroken).values.toVector
  }

  private def hintedVersion: Option[Long] =
    try {
      val json =
        ActionJson.mapper.readTree(store.read(new Path(directory, FileNames.LastCheckpoint)))
      Option(json).map(_.path("version")).filter(_.canConvertToLong).map(_.longValue).filter(_ >= 0)
    } catch {
      case _: java.io.IOException => None
    }

  private def segmentOrFail(log: Listed, target: Option[Long]): LogSegment = {
    if (log.isEmpty) notATable()
    segmentFrom(log, target, wholeLog = true).getOrElse(notFound(log, target.get))
  }

  /**
   * @param wholeLog whether the listing began at 0; if not, it is no ground to say that anything is missing
   */
  private def segmentFrom(
      log: Listed,
      target: Option[Long],
      wholeLog: Boolean
  ): Option[LogSegment] = {
    val limit = target.getOrElse(Long.MaxValue)
    val checkpoint = log.checkpoints.rangeTo(limit).lastOption.map(_._2)
    val first = checkpoint.fold(0L)(_.version + 1)
    val commits = log.commits.iteratorFrom(first).takeWhile(_._1 <= limit).toVector
    val version = commits.lastOption.map(_._1).orElse(checkpoint.map(_.version))
    if (version.isEmpty || target.exists(_ != version.get)) None
    else if (checkpoint.isEmpty && !wholeLog) None
    else {
      requireUnbroken(log, checkpoint, commits.map(_._1), version.get)
      Some(
        LogSegment(table, version.get, checkpoint, commits.map(_._2), log.commits.get(version.get))
      )
    }
  }

  private def requireUnbroken(
      log: Listed,
      checkpoint: Option[Checkpoint],
      commits: Seq[Long],
      version: Long
  ): Unit = {
    val start = checkpoint.fold(-1L)(_.version)
    if (checkpoint.isEmpty && commits.headOption.exists(_ > 0)) {
      // A V2 checkpoint would have covered the missing versions: say that this is what cannot be read.
      if (log.uuidCheckpoints.exists(_ <= version)) {
        TableFeatures.refuseFeatures("READER", table.toString, version, Set("v2Checkpoint"))
      }
      fail(
        "DELTAIC_LOG_INCOMPLETE",
        "version" -> version.toString,
        "earliest" -> commits.head.toString
      )
    }
    (start +: commits).zip(commits).find { case (before, after) => after != before + 1 }.foreach {
      case (before, after) =>
        fail(
          "DELTAIC_LOG_GAP",
          "missing" -> (before + 1).toString,
          "before" -> before.toString,
          "after" -> after.toString
        )
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
    throw new DeltaicException(condition, Map("table" -> table.toString) ++ parameters)

  private def listed(from: Long): Listed = {
    val log = new Listed
    store.listFrom(directory, FileNames.firstOf(from)).foreach(log.add)
    log.complete()
  }
}

/** What a listing of the log directory showed. */
private[log] final class Listed {
  import FileNames._

  val commits: mutable.TreeMap[Long, FileStatus] = mutable.TreeMap.empty
  val checkpoints: mutable.TreeMap[Long, Checkpoint] = mutable.TreeMap.empty
  val uuidCheckpoints: mutable.Set[Long] = mutable.Set.empty
  private val parts = mutable.Map.empty[(Long, Int), Map[Int, FileStatus]]

  def add(file: FileStatus): Unit = classify(file.getPath.getName) match {
    case Some(CommitName(version)) => commits(version) = file
    case Some(ClassicCheckpointName(version)) if file.getLen > 0 =>
      checkpoints(version) = Checkpoint(version, Seq(file))
    case Some(CheckpointPartName(version, part, total)) =>
      parts((version, total)) = parts.getOrElse((version, total), Map.empty).updated(part, file)
    case Some(UuidCheckpointName(version)) => uuidCheckpoints += version
    case _ => ()
  }

  /** A multi-part checkpoint counts once all its parts are there; a classic one of the same version is preferred. */
  def complete(): Listed = {
    parts.foreach { case ((version, total), found) =>
      if (found.size == total && !checkpoints.contains(version)) {
        checkpoints(version) = Checkpoint(version, (1 to total).map(found))
      }
    }
    this
  }

  def isEmpty: Boolean = commits.isEmpty && checkpoints.isEmpty && uuidCheckpoints.isEmpty

  def latest: Long =
    (commits.lastOption.map(_._1) ++ checkpoints.lastOption.map(_._1)).maxOption.getOrElse(-1L)

  /** The first commit of the row of commits that reaches the latest one without a gap. */
  def firstUnbroken: Long = {
    val descending = commits.keysIterator.toArray.reverse
    if (descending.isEmpty) latest + 1
    else {
      val broken = descending.indices.drop(1).find(i => descending(i) != descending(i - 1) - 1)
      descending(broken.getOrElse(descending.length) - 1)
    }
  }

  /** The lowest version from which the log is complete, if any is. */
  def earliest: Option[Long] =
    if (firstUnbroken == 0) Some(0L)
    else checkpoints.keysIteratorFrom(firstUnbroken - 1).nextOption()
}
