package io.deltaic.replay

import java.io.{FileNotFoundException, IOException}

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.slf4j.LoggerFactory

import io.deltaic.log._
import io.deltaic.protocol.{CommitInfo, DeltaicException, DeltaicThrowable}

/**
 * The log of one table: its snapshots, its commits, and the writes of new commits. Thread safe.
 *
 * @param table the root directory, qualified
 * @param maxInMemoryBytes a checkpoint of more bytes makes distributed snapshots
 */
final class DeltaLog private (
    val table: Path,
    private[deltaic] val conf: Configuration,
    cached: CachedTable,
    maxInMemoryBytes: Long
) {
  import DeltaLog.logger

  private val directory = FileNames.logDirectory(table)
  private val store = LogStore.forPath(directory, conf)
  private val listing = new LogListing(table, store)
  private val reader = new CommitReader(table, store)
  private val staged = new StagedCommits(table, store)
  private val replay = new Replay(table, conf, store, maxInMemoryBytes)

  /** A log that shares nothing with others of the same table. */
  def this(table: Path, conf: Configuration, maxInMemoryBytes: Long = DeltaLog.NeverDistributed) =
    this(DeltaLog.qualified(table, conf), conf, new CachedTable, maxInMemoryBytes)

  /** Whether there is a Delta table. A log of many files is not listed if a cached version is still there. */
  def exists: Boolean = Option(cached.newest).exists(isUnchanged) || listing.exists

  /** The newest version: the cached snapshot and the commits since, or, if there is none, the whole log. */
  def latest(): Snapshot = cached.synchronized {
    val before = cached.newest
    val startedAtNanos = System.nanoTime
    val now = (if (before == null || !suits(before.snapshot)) None else update(before)).getOrElse {
      var unreadable = Set.empty[String]
      val (snapshot, segment) = replay.full { passed =>
        unreadable = passed
        listing.latest(passed)
      }
      cached.measured = segment.checkpoint.map(_.name -> snapshot.state.checkpointBytes)
      CachedSnapshot(snapshot, segment.lastFile, unreadable)
    }
    cached.newest = now
    // Always: queries add decoded data to a snapshot's files.
    DeltaLog.tables.evict(except = cached)
    if (now ne before) report(now.snapshot, startedAtNanos)
    published(now.snapshot)
  }

  private def published(snapshot: Snapshot): Snapshot = {
    staged.requireNone(snapshot.version, snapshot.protocol, snapshot.metadata)
    snapshot
  }

  /**
   * A summary of the newest version from its checksum file, which saves reading the version. None if a snapshot is
   * cached, or if the file is missing or incomplete. A later read of the version is compared with the file, see
   * [[ChecksumCheck]].
   */
  def latestFromChecksum(): Option[TableSummary] =
    if (cached.newest != null) None
    else {
      val segment = listing.latest()
      segment.checksum
        .flatMap(VersionChecksum.read(store, _))
        .flatMap(TableSummary.of(segment, _))
        .filterNot(summary => StagedCommits.isCoordinated(summary.protocol, summary.metadata))
    }

  /** The table at a version: a cached snapshot, a cached snapshot and later commits, or else from the log alone. */
  def at(version: Long): Snapshot = {
    val snapshots = cached.snapshots.filter(k => suits(k.snapshot))
    snapshots
      .find(k => k.version == version && isUnchanged(k))
      .fold(travelTo(version, snapshots))(_.snapshot)
  }

  /** The version of a distributed snapshot, read without its checkpoint, which turned out to be unreadable. */
  private[deltaic] def withoutCheckpoint(snapshot: Snapshot, reason: String): Snapshot =
    snapshot.stored.fold(snapshot) { stored =>
      val unreadable = new UnreadableCheckpoint(stored.checkpoint, reason)
      // Otherwise two unreadable checkpoints would be tried alternately.
      val before =
        cached.snapshots.find(_.snapshot eq snapshot).fold(Set.empty[String])(_.unreadable)
      var all = before
      val (other, segment) = replay.full(
        { passed =>
          all = before ++ passed
          listing.at(snapshot.version, all)
        },
        Seq(unreadable)
      )
      val now = CachedSnapshot(other, segment.lastFile, all)
      cached.synchronized {
        val isNewest = cached.newest != null && (cached.newest.snapshot eq snapshot)
        if (isNewest) cached.newest = now else cached.travelled = now
      }
      other
    }

  /**
   * The result of `read` for a snapshot, or for the same version without its checkpoint if that turns out to be
   * unreadable.
   */
  private[deltaic] def withReadableFiles[A](snapshot: Snapshot)(read: Snapshot => A): A =
    try read(snapshot)
    catch {
      case e: DeltaicThrowable
          if e.condition == "DELTAIC_CHECKPOINT_UNREADABLE" && snapshot.isDistributed =>
        val reason = e.parameters.getOrElse("tried", e.getMessage)
        withReadableFiles(withoutCheckpoint(snapshot, reason))(read)
    }

  /**
   * The table at a version that was just committed, if it can be derived from a cached snapshot: post-commit
   * maintenance must not read the whole log.
   */
  private[deltaic] def afterCommit(version: Long): Option[Snapshot] = {
    val snapshots = cached.snapshots
    val same = snapshots.find(k => k.version == version && isUnchanged(k)).map(_.snapshot)
    def reached(base: CachedSnapshot, segment: LogSegment): Snapshot = {
      val snapshot = replay.advance(base.snapshot, segment.after(base.version))
      val now = CachedSnapshot(snapshot, segment.lastFile, base.unreadable)
      cached.synchronized {
        val isNewer = cached.newest == null || cached.newest.version < version
        if (isNewer) cached.newest = now else cached.committed = now
      }
      DeltaLog.tables.evict(except = cached)
      snapshot
    }
    if (same.isDefined || (snapshots.isEmpty && version > 0)) same
    else if (version == 0) Some(at(version))
    else {
      val segment = listing.at(version)
      nearest(segment, snapshots).map(reached(_, segment))
    }
  }

  /** The newest version committed at or before the timestamp, if there is one. */
  private[deltaic] def newestNotAfter(timestampMs: Long): Option[Long] = {
    val times = commitTimes()
    if (times.commits.isEmpty || times.isBefore(timestampMs, times.firstVersion)) None
    else if (timestampMs >= times.timeMs(times.latest)) Some(times.latest)
    else Some(times.versionAt(timestampMs, times.firstVersion))
  }

  private def travelTo(version: Long, snapshots: Seq[CachedSnapshot]): Snapshot = {
    val startedAtNanos = System.nanoTime
    val segment = listing.at(version)
    val snapshot = nearest(segment, snapshots) match {
      case Some(base) => replay.advance(base.snapshot, segment.after(base.version))
      case None =>
        var first = Option(segment)
        replay.full { unreadable =>
          val chosen = first.getOrElse(listing.at(version, unreadable))
          first = None
          chosen
        }._1
    }
    cached.travelled = CachedSnapshot(snapshot, segment.lastFile)
    DeltaLog.tables.evict(except = cached)
    report(snapshot, startedAtNanos)
    snapshot
  }

  /** Another session may have a different limit. */
  private def suits(snapshot: Snapshot): Boolean =
    snapshot.isDistributed == (snapshot.state.checkpointBytes > maxInMemoryBytes)

  /** Logs the time and memory that a snapshot costs. */
  private def report(snapshot: Snapshot, startedAtNanos: Long): Unit =
    logger.info(
      "Table {}: version {} loaded in {} ms, {} files in memory, {} bytes of heap, {}",
      table,
      snapshot.version,
      (System.nanoTime - startedAtNanos) / 1000000,
      snapshot.filesInMemory.size,
      snapshot.retainedBytes,
      snapshot.stored.fold("local") { stored =>
        s"distributed: ${stored.sizeBytes} bytes stay in checkpoint ${stored.checkpoint.name}"
      }
    )

  /** The newest cached snapshot between the segment's checkpoint and its version. */
  private def nearest(segment: LogSegment, snapshots: Seq[CachedSnapshot]): Option[CachedSnapshot] =
    snapshots
      .filter(k => k.version < segment.version && segment.files.exists(k.endsWith))
      .maxByOption(_.version)

  /**
   * The newest version that was committed at or before the timestamp.
   *
   * A timestamp before the earliest readable version, or after the latest, is an error. So is one that falls into a gap
   * in the log, because the missing commit may have been made at that time.
   */
  def versionAt(timestampMs: Long): Long = {
    val times = timesOfCommits()
    val below =
      if (times.isBefore(timestampMs, times.firstVersion)) versionBelowGap(timestampMs, times)
      else None
    below.getOrElse(
      times.versionAt(timestampMs, math.max(earliestVersion, times.firstVersion))
    )
  }

  /** A checkpoint may replace missing commits, and the versions before the gap may be complete. */
  private def versionBelowGap(timestampMs: Long, above: CommitTimes): Option[Long] = {
    val ranges = listing.rangesBelow(above.firstVersion).map(above.forCommits)
    val after = above.firstVersion +: ranges.map(_.firstVersion)
    ranges.zip(after)
      .find { case (range, _) => !range.isBefore(timestampMs, range.firstVersion) }
      .flatMap { case (range, next) =>
        val isInGap = timestampMs > range.timeMs(range.latest)
        val found =
          if (isInGap) range.latest else range.versionAt(timestampMs, range.firstVersion)
        if (!listing.isReachable(found)) None
        else if (isInGap) listing.failOfGap(found, next)
        else Some(found)
      }
  }

  /**
   * The oldest version whose commit is in the log and that was committed at or after the timestamp; the latest version
   * plus one if the timestamp is after that.
   */
  def versionFrom(timestampMs: Long): Long = timesOfCommits().versionFrom(timestampMs)

  /** The lowest version that can be read. */
  def earliestVersion: Long = listing.earliestVersion()

  /** The actions of one commit. */
  def commit(version: Long): CommitFile =
    commitFile(version) match {
      case Some(file) => unlessDeleted(version)(reader.read(version, file))
      case None => notFound(version)
    }

  /** Cleanup may delete a commit between listing and reading the file. */
  private def unlessDeleted[A](version: Long)(read: => A): A =
    try read
    catch { case _: FileNotFoundException => notFound(version) }

  /**
   * Version, time and commitInfo of each commit file that is still in the log, even if the version cannot be
   * reconstructed: history also describes a table that cannot be read.
   *
   * @param limit the maximum number of commits, in the requested order
   */
  def commitInfos(
      newestFirst: Boolean = true,
      limit: Option[Int] = None
  ): Iterator[(Long, Long, Option[CommitInfo])] = {
    val files = listing.allCommits()
    // Without a snapshot, a timestamp in a commit is the only evidence that in-commit timestamps are enabled.
    val inCommitFrom =
      try { val s = latest(); CommitTimes.inCommitFrom(s.protocol, s.metadata) }
      catch { case NonFatal(_) => 0L }
    val timed = files.zip(CommitTimes.ofFiles(files))
    val ordered = if (newestFirst) timed.reverse else timed
    val wanted = limit.fold(ordered)(ordered.take)
    LogThreads.mapInOrder(wanted.iterator) { case (file, timeMs) =>
      val version = FileNames.versionOf(file)
      try {
        val info = reader.readCommitInfo(version, file)
        val inCommit = info.filter(_ => version >= inCommitFrom).flatMap(_.inCommitTimestampMs)
        Some((version, inCommit.getOrElse(timeMs), info))
      } catch { case _: FileNotFoundException => None }
    }.flatten
  }

  /**
   * The newest version, even of a table that this build cannot read. It is only for describing the table, not for
   * reading its files, because an unsupported feature may change their meaning.
   */
  def latestUnchecked(): Snapshot =
    try latest()
    catch {
      case e: DeltaicThrowable if DeltaLog.Unreadable(e.condition) =>
        val describing = new Replay(table, conf, store, maxInMemoryBytes, refusesUnreadable = false)
        try describing.full(listing.latest(_))._1
        catch { case NonFatal(_) => throw e }
    }

  /**
   * The commits of these versions, both ends inclusive, in order, each with its time. They are read by several threads.
   * A version whose commit is no longer in the log is an error.
   */
  def commits(first: Long, last: Long): Iterator[(CommitFile, Long)] = {
    val times = commitTimes()
    val files = times.commits.map(f => FileNames.versionOf(f) -> f).toMap
    LogThreads.mapInOrder((first to last).iterator) { version =>
      val file = files.getOrElse(version, notFound(version))
      unlessDeleted(version) {
        val commit = reader.read(version, file)
        (commit, times.timeMs(version, commit.commitInfo))
      }
    }
  }

  /**
   * The same without times, which saves listing the whole log, and with a read-ahead of one commit: each may have a
   * hundred thousand files, and callers may need few of the commits. A missing commit is an error when it is reached.
   */
  def commitFiles(first: Long, last: Long): Iterator[CommitFile] =
    LogThreads.mapInOrder((first to last).iterator, readAhead = 1)(commit)

  /** Whether the log has the commit of a version. */
  def hasCommit(version: Long): Boolean = commitFile(version).isDefined

  /** The commit file of a version, if there is one. */
  def commitFile(version: Long): Option[FileStatus] =
    store.status(FileNames.commit(directory, version))

  /** The first version from which on the log has every commit; the latest version plus one if it has none. */
  def earliestCommit: Long =
    listing.unbrokenCommits().headOption.fold(latest().version + 1)(FileNames.versionOf)

  /** Fails if nothing can be committed here, because the file system is not supported for writes. */
  def requireWritable(): Unit = store.requireWritable(directory)

  /**
   * Writes the commit of this version unless another writer already has. Only version 0 may create a log: if the
   * previous version is missing, the table was deleted, and a commit must not recreate a part of it.
   *
   * @param read the commit file of the version that was read, if there is one
   */
  def tryCommit(
      version: Long,
      lines: Iterator[String],
      read: Option[FileStatus] = None
  ): WriteOutcome = {
    val file = FileNames.commit(directory, version)
    def check(): Unit =
      try requireSameTable(version - 1, read)
      catch {
        // Nothing has been written yet.
        case e: IOException =>
          val facts = Map("file" -> file.toString, "reason" -> e.toString)
          throw DeltaicException("DELTAIC_LOG_WRITE_FAILED", facts, e)
      }
    if (version == 0) store.writeIfAbsent(file, lines)
    else
      try store.writeBesideIfAbsent(file, lines, () => check())
      catch {
        // Without a directory no file can be written; the reason for that is the better error.
        case e: DeltaicThrowable if e.condition == "DELTAIC_LOG_WRITE_FAILED" =>
          check()
          throw e
      }
  }

  /** @param version the version whose commit must be in the log, unless a checkpoint replaces it */
  private def requireSameTable(version: Long, read: Option[FileStatus]): Unit = {
    val isSame = read.flatMap(r => store.status(r.getPath).map(DeltaLog.isSameFile(_, r)))
    val name = FileNames.commit(directory, version).getName
    def isHeld = (isSame.isDefined && read.exists(_.getPath.getName == name)) ||
      hasCommit(version) || listing.hasCheckpoint(version)
    if (isSame.contains(false) || !isHeld)
      throw DeltaicException(
        "DELTAIC_TABLE_REPLACED",
        Map("table" -> table.toString, "version" -> version.toString)
      )
  }

  private def commitTimes(): CommitTimes = {
    val snapshot = latest()
    new CommitTimes(
      table,
      reader,
      listing.unbrokenCommits(),
      snapshot.protocol,
      snapshot.metadata
    )
  }

  /** As [[commitTimes]], for finding a version by its time; fails if there is no commit. */
  private def timesOfCommits(): CommitTimes = {
    val times = commitTimes()
    if (times.commits.isEmpty) notFound(latest().version)
    times
  }

  private def notFound(version: Long): Nothing = throw DeltaicException(
    "DELTAIC_COMMIT_NOT_FOUND",
    Map("table" -> table.toString, "version" -> version.toString)
  )

  /** None if the log does not continue the cached snapshot: it was cleaned up, or belongs to another table. */
  private def update(base: CachedSnapshot): Option[CachedSnapshot] = {
    val tail = listing.tail(base.version)
    val added = tail.commits
    if (!tail.first.exists(base.endsWith)) None
    else if (tail.checkpoint.exists(isBetterBase(base, _))) None
    // A commit is missing, and only a checkpoint may replace it.
    else if (tail.latest != base.version + added.size) None
    else if (added.isEmpty) Some(base)
    else {
      val segment =
        LogSegment(table, tail.latest, None, added, added.lastOption, checksum = tail.checksum)
      // Cleanup may delete a commit that a checkpoint covers: the whole log is then listed again.
      try Some(base.copy(replay.advance(base.snapshot, segment), segment.lastFile))
      catch { case _: FileNotFoundException => None }
    }
  }

  /**
   * Starting again from a checkpoint is cheap for a distributed snapshot, and keeps its memory use small. An in-memory
   * snapshot does so only when the table has outgrown the limit.
   */
  private def isBetterBase(base: CachedSnapshot, checkpoint: Checkpoint): Boolean =
    !base.unreadable(checkpoint.name) &&
    base.snapshot.stored.fold(
      maxInMemoryBytes != DeltaLog.NeverDistributed && bytesOf(base, checkpoint) > maxInMemoryBytes
    )(_.checkpoint.version < checkpoint.version)

  private def bytesOf(base: CachedSnapshot, checkpoint: Checkpoint): Long =
    cached.measured.filter(_._1 == checkpoint.name).map(_._2).getOrElse {
      val measured = replay.bytesOf(checkpoint, base.snapshot.protocol)
      measured.foreach(bytes => cached.measured = Some(checkpoint.name -> bytes))
      measured.getOrElse(checkpoint.sizeBytes)
    }

  private def isUnchanged(snapshot: CachedSnapshot): Boolean =
    store.status(snapshot.lastFile.getPath).exists(snapshot.endsWith)
}

object DeltaLog {

  /** The errors of a table that requires a newer build to read. */
  private val Unreadable = Set(
    "DELTAIC_UNSUPPORTED_READER_FEATURE",
    "DELTAIC_UNSUPPORTED_READER_VERSION",
    "DELTAIC_UNSUPPORTED_FILE_FORMAT",
    "DELTAIC_PROTOCOL_INVALID"
  )

  /** Memory is bounded by the bytes of snapshots; this bounds the cost of checking all tables after each commit. */
  private val MaxTables = 1000

  private[replay] val tables = new SnapshotCache(MaxTables)

  /**
   * Whether two statuses of one name are of the same file. Object stores report the time in milliseconds in a listing
   * and in seconds for a single file, or in seconds in both.
   */
  private[deltaic] def isSameFile(a: FileStatus, b: FileStatus): Boolean =
    a.getLen == b.getLen && isSameTime(a.getModificationTime, b.getModificationTime)

  private def isSameTime(a: Long, b: Long): Boolean =
    a == b || (a / 1000 == b / 1000 && (a % 1000 == 0 || b % 1000 == 0))

  /** Larger than any checkpoint. */
  val NeverDistributed: Long = Long.MaxValue

  private val logger = LoggerFactory.getLogger(classOf[DeltaLog])

  /**
   * The log of a table. Logs of the same table share its newest snapshot, but each accesses the file system with its
   * own configuration: without permission to list the log, the snapshot is not accessible.
   */
  def forTable(table: Path, conf: Configuration): DeltaLog =
    forTable(table, conf, NeverDistributed)

  /** @param maxInMemoryBytes a checkpoint of more bytes makes distributed snapshots */
  def forTable(table: Path, conf: Configuration, maxInMemoryBytes: Long): DeltaLog = {
    val root = qualified(table, conf)
    new DeltaLog(root, conf, tables.of(root.toString), maxInMemoryBytes)
  }

  /** Removes a table from the cache, for example after its directory was deleted. */
  def invalidate(table: Path): Unit = {
    val path = rootPath(table)
    tables.forget(root => rootPath(new Path(root)) == path)
  }

  /** The normalized path of a table's root. */
  private def qualified(table: Path, conf: Configuration): Path = {
    val uri = table.getFileSystem(conf).makeQualified(table).toUri
    new Path(uri.getScheme, uri.getAuthority, rootPath(new Path(uri)))
  }

  private def rootPath(table: Path): String = {
    val path = table.toUri.getPath
    if (path.length > 1) path.stripSuffix("/") else path
  }
}
