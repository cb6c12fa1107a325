package io.deltaic.replay

import java.io.{FileNotFoundException, IOException}

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.slf4j.LoggerFactory

import io.deltaic.log._
import io.deltaic.protocol.{CommitInfo, DeltaicException, DeltaicThrowable}

/**
 * The log of one table: its snapshots, its commits, and the place where new ones are written. Thread safe.
 *
 * @param table the root directory, qualified
 * @param bytesInMemory a checkpoint of more bytes makes distributed snapshots
 */
final class DeltaLog private (
    val table: Path,
    private[deltaic] val conf: Configuration,
    known: KnownTable,
    bytesInMemory: Long
) {
  import DeltaLog.logger

  private val directory = FileNames.logDirectory(table)
  private val store = LogStore.forPath(directory, conf)
  private val listing = new LogListing(table, store)
  private val reader = new CommitReader(table, store)
  private val staged = new StagedCommits(table, store)
  private val replay = new Replay(table, conf, store, bytesInMemory)

  /** A log of its own, which shares nothing with others of the same table. */
  def this(table: Path, conf: Configuration, bytesInMemory: Long = DeltaLog.NeverDistributed) =
    this(DeltaLog.qualified(table, conf), conf, new KnownTable, bytesInMemory)

  /** Whether there is a Delta table. */
  def exists: Boolean = listing.exists

  /** The newest version: the last one known and the commits since, or, when there is none, the whole log. */
  def latest(): Snapshot = known.synchronized {
    val before = known.newest
    val startedAtNanos = System.nanoTime
    val now = (if (before == null || !suits(before.snapshot)) None else follow(before)).getOrElse {
      var unreadable = Set.empty[String]
      val (snapshot, segment) = replay.full { passed =>
        unreadable = passed
        listing.latest(passed)
      }
      known.measured = segment.checkpoint.map(_.name -> snapshot.state.checkpointBytes)
      Known(snapshot, segment.lastFile, unreadable)
    }
    known.newest = now
    // Always: what is decoded of a snapshot's files grows with what it is asked.
    DeltaLog.tables.evict(except = known)
    if (now ne before) report(now.snapshot, startedAtNanos)
    published(now.snapshot)
  }

  private def published(snapshot: Snapshot): Snapshot = {
    staged.requireNone(snapshot.version, snapshot.protocol, snapshot.metadata)
    snapshot
  }

  /**
   * What the newest version's checksum file says of it, where that spares reading the version: none if it is known, at
   * least in part, or if the file is missing or leaves anything open. Whoever then reads the version holds it against the
   * file, see [[ChecksumCheck]].
   */
  def latestFromChecksum(): Option[TableSummary] =
    if (known.newest != null) None
    else {
      val segment = listing.latest()
      segment.checksum
        .flatMap(VersionChecksum.read(store, _))
        .flatMap(TableSummary.of(segment, _))
        .filterNot(summary => StagedCommits.isCoordinated(summary.protocol, summary.metadata))
    }

  /** The table at one version: one that is held, or one that is held and a few commits, or else from the log alone. */
  def at(version: Long): Snapshot = {
    val held = known.held.filter(k => suits(k.snapshot))
    held
      .find(k => k.version == version && isUnchanged(k))
      .fold(travelTo(version, held))(_.snapshot)
  }

  /** The version of a distributed snapshot, without its checkpoint, which turned out to be unreadable. */
  private[deltaic] def withoutCheckpoint(snapshot: Snapshot, reason: String): Snapshot =
    snapshot.stored.fold(snapshot) { stored =>
      val unreadable = new UnreadableCheckpoint(stored.checkpoint, reason)
      // Else two that are both unreadable would take turns.
      val before = known.held.find(_.snapshot eq snapshot).fold(Set.empty[String])(_.unreadable)
      var all = before
      val (other, segment) = replay.full(
        { passed =>
          all = before ++ passed
          listing.at(snapshot.version, all)
        },
        Seq(unreadable)
      )
      val now = Known(other, segment.lastFile, all)
      known.synchronized {
        val isNewest = known.newest != null && (known.newest.snapshot eq snapshot)
        if (isNewest) known.newest = now else known.travelled = now
      }
      other
    }

  /** What `read` makes of a snapshot, or of the same version without its checkpoint if that turns out to be unreadable. */
  private[deltaic] def withReadableFiles[A](snapshot: Snapshot)(read: Snapshot => A): A =
    try read(snapshot)
    catch {
      case e: DeltaicThrowable
          if e.condition == "DELTAIC_CHECKPOINT_UNREADABLE" && snapshot.isDistributed =>
        val reason = e.parameters.getOrElse("tried", e.getMessage)
        withReadableFiles(withoutCheckpoint(snapshot, reason))(read)
    }

  /**
   * The table at a version that was just committed, if what is held of the table leads there: what follows a commit must
   * not cost as much as reading the whole log.
   */
  private[deltaic] def afterCommit(version: Long): Option[Snapshot] = {
    val held = known.held
    val same = held.find(k => k.version == version && isUnchanged(k)).map(_.snapshot)
    def reached(base: Known, segment: LogSegment): Snapshot = {
      val snapshot = replay.advance(base.snapshot, segment.after(base.version))
      val now = Known(snapshot, segment.lastFile, base.unreadable)
      known.synchronized {
        val isNewer = known.newest == null || known.newest.version < version
        if (isNewer) known.newest = now else known.passed = now
      }
      DeltaLog.tables.evict(except = known)
      snapshot
    }
    if (same.isDefined || (held.isEmpty && version > 0)) same
    else if (version == 0) Some(at(version))
    else {
      val segment = listing.at(version)
      nearest(segment, held).map(reached(_, segment))
    }
  }

  /** The newest version committed at that time or before, if there is one. */
  private[deltaic] def newestNotAfter(timestampMs: Long): Option[Long] = {
    val times = commitTimes()
    if (times.commits.isEmpty || times.isBefore(timestampMs, times.firstVersion)) None
    else if (timestampMs >= times.timeMs(times.latest)) Some(times.latest)
    else Some(times.versionAt(timestampMs, times.firstVersion))
  }

  private def travelTo(version: Long, held: Seq[Known]): Snapshot = {
    val startedAtNanos = System.nanoTime
    val segment = listing.at(version)
    val snapshot = nearest(segment, held) match {
      case Some(base) => replay.advance(base.snapshot, segment.after(base.version))
      case None =>
        var first = Option(segment)
        replay.full { unreadable =>
          val chosen = first.getOrElse(listing.at(version, unreadable))
          first = None
          chosen
        }._1
    }
    known.travelled = Known(snapshot, segment.lastFile)
    DeltaLog.tables.evict(except = known)
    report(snapshot, startedAtNanos)
    snapshot
  }

  /** Another session may have another limit. */
  private def suits(snapshot: Snapshot): Boolean =
    snapshot.isDistributed == (snapshot.state.checkpointBytes > bytesInMemory)

  /** What a snapshot costs, for whoever wonders where time and memory went. */
  private def report(snapshot: Snapshot, startedAtNanos: Long): Unit =
    logger.info(
      "Table {}: version {} loaded in {} ms, {} files in memory, {} bytes of heap, {}",
      table,
      snapshot.version,
      (System.nanoTime - startedAtNanos) / 1000000,
      snapshot.filesInMemory.size,
      snapshot.retainedBytes,
      snapshot.stored.fold("local") { stored =>
        s"distributed: ${stored.sizeBytes} bytes stay in ${stored.checkpoint.name} and its like"
      }
    )

  /** The newest snapshot on the way from the segment's checkpoint to its version. */
  private def nearest(segment: LogSegment, held: Seq[Known]): Option[Known] =
    held
      .filter(k => k.version < segment.version && segment.files.exists(k.endsWith))
      .maxByOption(_.version)

  /**
   * The newest version that was committed at that time or before.
   *
   * A time before the earliest version that can be read, or after the latest, is an error. So is one at which the commit
   * may have been made that a gap in the log has swallowed.
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

  /** A checkpoint may stand for commits that are missing, and the versions before those may be whole. */
  private def versionBelowGap(timestampMs: Long, above: CommitTimes): Option[Long] = {
    val rows = listing.rowsBelow(above.firstVersion).map(above.ofOther)
    val after = above.firstVersion +: rows.map(_.firstVersion)
    rows.zip(after)
      .find { case (row, _) => !row.isBefore(timestampMs, row.firstVersion) }
      .flatMap { case (row, next) =>
        val isInGap = timestampMs > row.timeMs(row.latest)
        val found = if (isInGap) row.latest else row.versionAt(timestampMs, row.firstVersion)
        if (!listing.holds(found)) None
        else if (isInGap) listing.failOfGap(found, next)
        else Some(found)
      }
  }

  /**
   * The oldest version whose commit the log holds and that was committed at that time or after; one above the latest
   * when the time is after that.
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

  /** Cleanup may delete a commit between a look at the log and the reading of the file. */
  private def unlessDeleted[A](version: Long)(read: => A): A =
    try read
    catch { case _: FileNotFoundException => notFound(version) }

  /**
   * Version, time and commitInfo of each commit file that the log still holds when it is read, whether or not a
   * version can be made of them: a history tells what has become of a table that cannot be read, too.
   *
   * @param limit how many, the first ones in the order asked for
   */
  def commitInfos(
      newestFirst: Boolean = true,
      limit: Option[Int] = None
  ): Iterator[(Long, Long, Option[CommitInfo])] = {
    val files = listing.allCommits()
    // Without a state, a timestamp in a commit is all there is to say that these count.
    val inCommitFrom =
      try { val known = latest(); CommitTimes.inCommitFrom(known.protocol, known.metadata) }
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
   * The newest version, also of a table that this build cannot read: to describe it, not to read its files. What a
   * feature that this build lacks makes of them is unknown.
   */
  def latestUnjudged(): Snapshot =
    try latest()
    catch {
      case e: DeltaicThrowable if DeltaLog.Unreadable(e.condition) =>
        val describing = new Replay(table, conf, store, bytesInMemory, judges = false)
        try describing.full(listing.latest(_))._1
        catch { case NonFatal(_) => throw e }
    }

  /**
   * The commits of these versions, both ends inclusive, in order, each with its time. They are read by several threads.
   * A version whose commit the log no longer holds is an error.
   */
  def commits(first: Long, last: Long): Iterator[(CommitFile, Long)] = {
    val times = commitTimes()
    val held = times.commits.map(f => FileNames.versionOf(f) -> f).toMap
    LogThreads.mapInOrder((first to last).iterator) { version =>
      val file = held.getOrElse(version, notFound(version))
      unlessDeleted(version) {
        val commit = reader.read(version, file)
        (commit, times.timeMs(version, commit.commitInfo))
      }
    }
  }

  /**
   * The same without times, which spares a look at the whole log, and one commit ahead: each may hold a hundred thousand
   * files, and whoever asks may need few of them. A missing commit is an error when it is reached.
   */
  def commitFiles(first: Long, last: Long): Iterator[CommitFile] =
    LogThreads.mapInOrder((first to last).iterator, readAhead = 1)(commit)

  /** Whether the log holds the commit of a version. */
  def holdsCommit(version: Long): Boolean = commitFile(version).isDefined

  /** The commit file of a version, if there is one. */
  def commitFile(version: Long): Option[FileStatus] =
    store.status(FileNames.commit(directory, version))

  /** The first version from which on the log holds every commit; one above the latest if it holds none. */
  def earliestCommit: Long =
    listing.unbrokenCommits().headOption.fold(latest().version + 1)(FileNames.versionOf)

  /** Fails if nothing can be committed here, because the file system knows no way to. */
  def requireWritable(): Unit = store.requireWritable(directory)

  /**
   * Writes the commit of this version unless some writer already has. Only the first version may make a log: where the
   * one that another follows is gone, so is the table, which must not come back as a part of itself.
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
        // Without a directory no file can be written, and the reason is worth more than that.
        case e: DeltaicThrowable if e.condition == "DELTAIC_LOG_WRITE_FAILED" =>
          check()
          throw e
      }
  }

  /** @param version the one that the log must hold, unless a checkpoint stands for it */
  private def requireSameTable(version: Long, read: Option[FileStatus]): Unit = {
    val isSame = read.flatMap(r => store.status(r.getPath).map(DeltaLog.isSameFile(_, r)))
    val name = FileNames.commit(directory, version).getName
    def isHeld = (isSame.isDefined && read.exists(_.getPath.getName == name)) ||
      holdsCommit(version) || listing.holdsCheckpoint(version)
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

  /** As [[commitTimes]], for whoever asks for a version by its time. */
  private def timesOfCommits(): CommitTimes = {
    val times = commitTimes()
    if (times.commits.isEmpty) notFound(latest().version)
    times
  }

  private def notFound(version: Long): Nothing = throw DeltaicException(
    "DELTAIC_COMMIT_NOT_FOUND",
    Map("table" -> table.toString, "version" -> version.toString)
  )

  /** None when the log does not continue what is known: then it was cleaned up, or is another table's. */
  private def follow(base: Known): Option[Known] = {
    val tail = listing.tail(base.version)
    val added = tail.commits
    if (!tail.first.exists(base.endsWith)) None
    else if (tail.checkpoint.exists(isBetterBase(base, _))) None
    // A commit is missing, and only a checkpoint may stand for it.
    else if (tail.latest != base.version + added.size) None
    else if (added.isEmpty) Some(base)
    else {
      val segment = LogSegment(
        table,
        tail.latest,
        checkpoint = None,
        added,
        added.lastOption,
        checksum = tail.checksum
      )
      // Cleanup may delete a commit once a checkpoint covers it: then the whole log is looked at again.
      try Some(base.copy(replay.advance(base.snapshot, segment), segment.lastFile))
      catch { case _: FileNotFoundException => None }
    }
  }

  /**
   * To begin anew with a checkpoint costs a distributed snapshot little, and keeps what it holds in memory small. One in
   * memory does so when the table has outgrown it.
   */
  private def isBetterBase(base: Known, checkpoint: Checkpoint): Boolean =
    !base.unreadable(checkpoint.name) &&
    base.snapshot.stored.fold(
      bytesInMemory != DeltaLog.NeverDistributed && bytesOf(base, checkpoint) > bytesInMemory
    )(_.checkpoint.version < checkpoint.version)

  private def bytesOf(base: Known, checkpoint: Checkpoint): Long =
    known.measured.filter(_._1 == checkpoint.name).map(_._2).getOrElse {
      val measured = replay.bytesOf(checkpoint, base.snapshot.protocol)
      measured.foreach(bytes => known.measured = Some(checkpoint.name -> bytes))
      measured.getOrElse(checkpoint.sizeBytes)
    }

  private def isUnchanged(held: Known): Boolean =
    store.status(held.lastFile.getPath).exists(held.endsWith)
}

object DeltaLog {

  /** What is wrong with a table that this build knows too little to read. */
  private val Unreadable = Set(
    "DELTAIC_UNSUPPORTED_READER_FEATURE",
    "DELTAIC_UNSUPPORTED_READER_VERSION",
    "DELTAIC_UNSUPPORTED_FILE_FORMAT",
    "DELTAIC_PROTOCOL_INVALID"
  )

  /** Memory is bounded by their bytes; this bounds what it takes to look at all of them after each commit. */
  private val TablesKept = 1000

  private[replay] val tables = new KnownTables(TablesKept)

  /**
   * Of two looks at one name, whether they saw the same file. Object stores tell its time to the millisecond in a list
   * and to the second by itself, or to the second in both.
   */
  private[deltaic] def isSameFile(a: FileStatus, b: FileStatus): Boolean =
    a.getLen == b.getLen && isSameTime(a.getModificationTime, b.getModificationTime)

  private def isSameTime(a: Long, b: Long): Boolean =
    a == b || (a / 1000 == b / 1000 && (a % 1000 == 0 || b % 1000 == 0))

  /** Larger than any checkpoint. */
  val NeverDistributed: Long = Long.MaxValue

  private val logger = LoggerFactory.getLogger(classOf[DeltaLog])

  /**
   * The log of a table. Logs of the same table share its newest snapshot, but each reaches the file system with its own
   * configuration: whoever may not list the log does not get to see the snapshot.
   */
  def forTable(table: Path, conf: Configuration): DeltaLog =
    forTable(table, conf, NeverDistributed)

  /** @param bytesInMemory a checkpoint of more bytes makes distributed snapshots */
  def forTable(table: Path, conf: Configuration, bytesInMemory: Long): DeltaLog = {
    val root = qualified(table, conf)
    new DeltaLog(root, conf, tables.of(root.toString), bytesInMemory)
  }

  /** Forgets what is known of a table, as when its directory was deleted. */
  def invalidate(table: Path): Unit = {
    val path = rootPath(table)
    tables.forget(root => rootPath(new Path(root)) == path)
  }

  /** The one spelling of a table's root that everything else is compared with. */
  private def qualified(table: Path, conf: Configuration): Path = {
    val uri = table.getFileSystem(conf).makeQualified(table).toUri
    new Path(uri.getScheme, uri.getAuthority, rootPath(new Path(uri)))
  }

  private def rootPath(table: Path): String = {
    val path = table.toUri.getPath
    if (path.length > 1) path.stripSuffix("/") else path
  }
}
