package io.deltaic.replay

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.log._
import io.deltaic.protocol.{CommitInfo, DeltaicException}

/**
 * The log of one table: its snapshots, its commits, and the place where new ones are written. Thread safe.
 *
 * @param table the root directory, qualified
 */
final class DeltaLog private (val table: Path, conf: Configuration, newest: DeltaLog.Newest) {

  private val directory = FileNames.logDirectory(table)
  private val store = LogStore.forPath(directory, conf)
  private val listing = new LogListing(table, store)
  private val reader = new CommitReader(table, store)
  private val replay = new Replay(table, conf, store)

  /** A log of its own, which shares nothing with others of the same table. */
  def this(table: Path, conf: Configuration) =
    this(DeltaLog.qualified(table, conf), conf, new DeltaLog.Newest)

  /** Whether there is a Delta table. */
  def exists: Boolean = listing.exists

  /** The newest version: the last one known and the commits since, or, when there is none, the whole log. */
  def latest(): Snapshot = newest.synchronized {
    val known = newest.known
    val now = (if (known == null) None else follow(known)).getOrElse {
      val segment = listing.latest()
      DeltaLog.Known(replay.full(segment), segment.lastCommit)
    }
    newest.known = now
    now.snapshot
  }

  /** The table at one version. */
  def at(version: Long): Snapshot = {
    val known = newest.synchronized(newest.known)
    if (known != null && known.snapshot.version == version && isUnchanged(known)) known.snapshot
    else replay.full(listing.at(version))
  }

  /**
   * The newest version that was committed at that time or before.
   *
   * A time before the earliest version that can be read, or after the latest, is an error.
   */
  def versionAt(timestampMs: Long): Long = {
    val times = commitTimes()
    times.versionAt(timestampMs, math.max(earliestVersion, times.firstVersion))
  }

  /**
   * The oldest version whose commit the log holds and that was committed at that time or after; one above the latest
   * when the time is after that.
   */
  def versionFrom(timestampMs: Long): Long = commitTimes().versionFrom(timestampMs)

  /** The lowest version that can be read. */
  def earliestVersion: Long = listing.earliestVersion()

  /** The actions of one commit. */
  def commit(version: Long): CommitFile =
    store.status(FileNames.commit(directory, version)) match {
      case Some(file) => reader.read(version, file)
      case None => notFound(version)
    }

  /**
   * Version, time and commitInfo of each commit that the log still holds.
   *
   * @param limit how many, the first ones in the order asked for
   */
  def commitInfos(
      newestFirst: Boolean = true,
      limit: Option[Int] = None
  ): Iterator[(Long, Long, Option[CommitInfo])] = {
    val times = commitTimes()
    val ordered = if (newestFirst) times.commits.reverse else times.commits
    val wanted = limit.fold(ordered)(ordered.take)
    LogThreads.mapInOrder(wanted.iterator) { file =>
      val version = FileNames.versionOf(file)
      val info = reader.readCommitInfo(version, file)
      (version, times.timeMs(version, info), info)
    }
  }

  /**
   * The commits of these versions, both ends inclusive, in order, each with its time. They are read by several threads.
   * A version whose commit the log no longer holds is an error.
   */
  def commits(first: Long, last: Long): Iterator[(CommitFile, Long)] = {
    val times = commitTimes()
    val held = times.commits.map(f => FileNames.versionOf(f) -> f).toMap
    LogThreads.mapInOrder((first to last).iterator) { version =>
      val commit = reader.read(version, held.getOrElse(version, notFound(version)))
      (commit, times.timeMs(version, commit.commitInfo))
    }
  }

  /** Writes the commit of this version unless some writer already has. */
  def tryCommit(version: Long, lines: Iterator[String]): WriteOutcome =
    store.writeIfAbsent(FileNames.commit(directory, version), lines)

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

  private def notFound(version: Long): Nothing = throw new DeltaicException(
    "DELTAIC_COMMIT_NOT_FOUND",
    Map("table" -> table.toString, "version" -> version.toString)
  )

  /** None when the log does not continue what is known: then it was cleaned up, or is another table's. */
  private def follow(known: DeltaLog.Known): Option[DeltaLog.Known] = {
    val version = known.snapshot.version
    val commits = listing.commitsFrom(version)
    if (!commits.headOption.exists(same(known, _))) None
    else if (commits.size == 1) Some(known)
    else {
      val added = commits.tail
      val unbroken = added.indices.forall(i => FileNames.versionOf(added(i)) == version + 1 + i)
      if (!unbroken) None
      else {
        val last = added.last
        val segment =
          LogSegment(table, FileNames.versionOf(last), checkpoint = None, added, Some(last))
        Some(DeltaLog.Known(replay.advance(known.snapshot, segment), Some(last)))
      }
    }
  }

  private def isUnchanged(known: DeltaLog.Known): Boolean =
    known.commit.exists(c => store.status(c.getPath).exists(same(known, _)))

  private def same(known: DeltaLog.Known, file: FileStatus): Boolean = known.commit.exists { c =>
    c.getPath.getName == file.getPath.getName && c.getLen == file.getLen &&
    c.getModificationTime == file.getModificationTime
  }
}

object DeltaLog {

  private val TablesKept = 64

  /** A snapshot and the commit file it ends with, by which a table that was replaced is told from one that grew. */
  private final case class Known(snapshot: Snapshot, commit: Option[FileStatus])

  /** Where the logs of one table keep its newest snapshot; also the lock under which they look for a newer one. */
  private final class Newest { var known: Known = _ }

  private val cache = new java.util.LinkedHashMap[String, Newest](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[String, Newest]): Boolean =
      size > TablesKept
  }

  /**
   * The log of a table. Logs of the same table share its newest snapshot, but each reaches the file system with its own
   * configuration: whoever may not list the log does not get to see the snapshot.
   */
  def forTable(table: Path, conf: Configuration): DeltaLog = {
    val root = qualified(table, conf)
    val newest = cache.synchronized(cache.computeIfAbsent(root.toString, _ => new Newest))
    new DeltaLog(root, conf, newest)
  }

  /** Forgets what is known of a table, as when its directory was deleted. */
  def invalidate(table: Path): Unit = cache.synchronized {
    val path = rootPath(table)
    cache.keySet.removeIf(key => rootPath(new Path(key)) == path)
    ()
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
