package io.deltaic.replay

import java.io.{FileNotFoundException, IOException}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.slf4j.LoggerFactory

import io.deltaic.log._
import io.deltaic.protocol.{CommitInfo, DeltaicException}

/**
 * The log of one table: its snapshots, its commits, and the place where new ones are written. Thread safe.
 *
 * @param table the root directory, qualified
 * @param bytesInMemory a checkpoint of more bytes makes distributed snapshots
 */
final class DeltaLog private (
    val table: Path,
    private[deltaic] val conf: Configuration,
    newest: DeltaLog.Newest,
    bytesInMemory: Long
) {
  import DeltaLog.{Known, logger}

  private val directory = FileNames.logDirectory(table)
  private val store = LogStore.forPath(directory, conf)
  private val listing = new LogListing(table, store)
  private val reader = new CommitReader(table, store)
  private val replay = new Replay(table, conf, store, bytesInMemory)

  /** A log of its own, which shares nothing with others of the same table. */
  def this(table: Path, conf: Configuration, bytesInMemory: Long = DeltaLog.NeverDistributed) =
    this(DeltaLog.qualified(table, conf), conf, new DeltaLog.Newest, bytesInMemory)

  /** Whether there is a Delta table. */
  def exists: Boolean = listing.exists

  /** The newest version: the last one known and the commits since, or, when there is none, the whole log. */
  def latest(): Snapshot = newest.synchronized {
    val known = newest.known
    val startedAtNanos = System.nanoTime
    val now = (if (known == null || !suits(known.snapshot)) None else follow(known)).getOrElse {
      var unreadable = Set.empty[String]
      val (snapshot, segment) = replay.full { passed =>
        unreadable = passed
        listing.latest(passed)
      }
      newest.measured = segment.checkpoint.map(_.name -> snapshot.state.checkpointBytes)
      Known(snapshot, segment.lastCommit, unreadable)
    }
    if (now ne known) {
      newest.known = now
      DeltaLog.evict(except = newest)
      report(now.snapshot, startedAtNanos)
    }
    now.snapshot
  }

  /**
   * What the newest version's checksum file says of it, where that spares reading the version: none if it is known, at
   * least in part, or if the file is missing or leaves anything open. Whoever then reads the version holds it against the
   * file, see [[ChecksumCheck]].
   */
  def latestFromChecksum(): Option[TableSummary] =
    if (newest.known != null) None
    else {
      val segment = listing.latest()
      segment.checksum
        .flatMap(VersionChecksum.read(store, _))
        .flatMap(TableSummary.of(segment, _))
    }

  /** The table at one version: one that is held, or one that is held and a few commits, or else from the log alone. */
  def at(version: Long): Snapshot = {
    val held = newest.held.filter(known => suits(known.snapshot))
    held
      .find(known => known.snapshot.version == version && isUnchanged(known))
      .fold(travelTo(version, held))(_.snapshot)
  }

  /** The version of a distributed snapshot, without its checkpoint, which turned out to be unreadable. */
  private[deltaic] def withoutCheckpoint(snapshot: Snapshot, reason: String): Snapshot =
    snapshot.stored.fold(snapshot) { stored =>
      val unreadable = new UnreadableCheckpoint(stored.checkpoint, reason)
      // Else two that are both unreadable would take turns.
      val before = newest.held.find(_.snapshot eq snapshot).fold(Set.empty[String])(_.unreadable)
      var all = before
      val (other, segment) = replay.full(
        { passed =>
          all = before ++ passed
          listing.at(snapshot.version, all)
        },
        Seq(unreadable)
      )
      val now = Known(other, segment.lastCommit, all)
      newest.synchronized {
        val isNewest = newest.known != null && (newest.known.snapshot eq snapshot)
        if (isNewest) newest.known = now else newest.travelled = now
      }
      other
    }

  /** What `read` makes of a snapshot, or of the same version without its checkpoint if that turns out to be unreadable. */
  private[deltaic] def withReadableFiles[A](snapshot: Snapshot)(read: Snapshot => A): A =
    try read(snapshot)
    catch {
      case e: DeltaicException
          if e.condition == "DELTAIC_CHECKPOINT_UNREADABLE" && snapshot.isDistributed =>
        val reason = e.parameters.getOrElse("tried", e.getMessage)
        withReadableFiles(withoutCheckpoint(snapshot, reason))(read)
    }

  /**
   * The table at a version that was just committed, if what is held of the table leads there: what follows a commit must
   * not cost as much as reading the whole log.
   */
  private[deltaic] def afterCommit(version: Long): Option[Snapshot] = {
    val held = newest.held
    val known = held.find(k => k.snapshot.version == version && isUnchanged(k)).map(_.snapshot)
    def reached(base: Known, segment: LogSegment): Snapshot = {
      val snapshot = replay.advance(base.snapshot, segment.after(base.snapshot.version))
      val now = Known(snapshot, segment.lastCommit, base.unreadable)
      newest.synchronized {
        val isNewer = newest.known == null || newest.known.snapshot.version < version
        if (isNewer) newest.known = now else newest.passed = now
      }
      DeltaLog.evict(except = newest)
      snapshot
    }
    if (known.isDefined || (held.isEmpty && version > 0)) known
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
      case Some(base) => replay.advance(base.snapshot, segment.after(base.snapshot.version))
      case None =>
        var first = Option(segment)
        replay.full { unreadable =>
          val chosen = first.getOrElse(listing.at(version, unreadable))
          first = None
          chosen
        }._1
    }
    newest.travelled = Known(snapshot, segment.lastCommit)
    DeltaLog.evict(except = newest)
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
      .filter(known => segment.commits.exists(same(known, _)))
      .filter(_.snapshot.version <= segment.version)
      .maxByOption(_.snapshot.version)

  /**
   * The newest version that was committed at that time or before.
   *
   * A time before the earliest version that can be read, or after the latest, is an error.
   */
  def versionAt(timestampMs: Long): Long = {
    val times = timesOfCommits()
    times.versionAt(timestampMs, math.max(earliestVersion, times.firstVersion))
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

  /** The same without times, which spares a look at the whole log. A missing commit is an error when it is reached. */
  def commitFiles(first: Long, last: Long): Iterator[CommitFile] =
    LogThreads.mapInOrder((first to last).iterator)(commit)

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
          throw new DeltaicException("DELTAIC_LOG_WRITE_FAILED", facts, e)
      }
    if (version == 0) store.writeIfAbsent(file, lines)
    else
      try store.writeBesideIfAbsent(file, lines, () => check())
      catch {
        // Without a directory no file can be written, and the reason is worth more than that.
        case e: DeltaicException if e.condition == "DELTAIC_LOG_WRITE_FAILED" =>
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
      throw new DeltaicException(
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

  private def notFound(version: Long): Nothing = throw new DeltaicException(
    "DELTAIC_COMMIT_NOT_FOUND",
    Map("table" -> table.toString, "version" -> version.toString)
  )

  /** None when the log does not continue what is known: then it was cleaned up, or is another table's. */
  private def follow(known: Known): Option[Known] = {
    val version = known.snapshot.version
    val tail = listing.tail(version)
    val commits = tail.commits
    if (!commits.headOption.exists(same(known, _))) None
    else if (tail.checkpoint.exists(isBetterBase(known, _))) None
    else if (commits.size == 1) Some(known)
    else {
      val added = commits.tail
      val unbroken = added.indices.forall(i => FileNames.versionOf(added(i)) == version + 1 + i)
      if (!unbroken) None
      else {
        val last = added.last
        val segment = LogSegment(
          table,
          FileNames.versionOf(last),
          checkpoint = None,
          added,
          Some(last),
          checksum = tail.checksum
        )
        // Cleanup may delete a commit once a checkpoint covers it: then the whole log is looked at again.
        try Some(known.copy(replay.advance(known.snapshot, segment), Some(last)))
        catch { case _: FileNotFoundException => None }
      }
    }
  }

  /**
   * To begin anew with a checkpoint costs a distributed snapshot little, and keeps what it holds in memory small. One in
   * memory does so when the table has outgrown it.
   */
  private def isBetterBase(known: Known, checkpoint: Checkpoint): Boolean =
    !known.unreadable(checkpoint.name) &&
    known.snapshot.stored.fold(
      bytesInMemory != DeltaLog.NeverDistributed && bytesOf(known, checkpoint) > bytesInMemory
    )(_.checkpoint.version < checkpoint.version)

  private def bytesOf(known: Known, checkpoint: Checkpoint): Long =
    newest.measured.filter(_._1 == checkpoint.name).map(_._2).getOrElse {
      val measured = replay.bytesOf(checkpoint, known.snapshot.protocol)
      measured.foreach(bytes => newest.measured = Some(checkpoint.name -> bytes))
      measured.getOrElse(checkpoint.sizeBytes)
    }

  private def isUnchanged(known: Known): Boolean =
    known.commit.exists(c => store.status(c.getPath).exists(same(known, _)))

  private def same(known: Known, file: FileStatus): Boolean =
    known.commit.exists(c =>
      c.getPath.getName == file.getPath.getName && DeltaLog.isSameFile(c, file)
    )
}

object DeltaLog {

  private val TablesKept = 64

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
   * A snapshot and the commit file it ends with, by which a table that was replaced is told from one that grew.
   *
   * @param unreadable names of checkpoints that were passed over for it
   */
  private final case class Known(
      snapshot: Snapshot,
      commit: Option[FileStatus],
      unreadable: Set[String] = Set.empty
  )

  /** Of the heap, what snapshots may take that nobody may be using. Tests set it. */
  @volatile private[replay] var bytesKept: Long = Runtime.getRuntime.maxMemory / 4

  /**
   * Where the logs of one table keep its newest snapshot, the one of the last time travel, and the last one that was
   * made after a commit while others went on; also the lock under which they look for a newer one.
   */
  private final class Newest {
    @volatile var known: Known = _
    @volatile var travelled: Known = _
    @volatile var passed: Known = _

    /** How large the checkpoint of this name is: one has to be read for that. */
    @volatile var measured: Option[(String, Long)] = None

    def held: Seq[Known] = Seq(known, travelled, passed).filter(_ != null)
    def retainedBytes: Long = held.map(_.snapshot.retainedBytes).sum
  }

  private val cache = new java.util.LinkedHashMap[String, Newest](16, 0.75f, true) {
    override def removeEldestEntry(eldest: java.util.Map.Entry[String, Newest]): Boolean =
      size > TablesKept
  }

  /** Forgets the tables that were asked for longest ago until the others fit. */
  private def evict(except: Newest): Unit = cache.synchronized {
    var bytes = cache.values.asScala.map(_.retainedBytes).sum
    val eldestFirst = cache.values.iterator
    while (bytes > bytesKept && eldestFirst.hasNext) {
      val table = eldestFirst.next()
      if (table ne except) {
        bytes -= table.retainedBytes
        eldestFirst.remove()
      }
    }
    if (bytes > bytesKept) {
      except.travelled = null
      except.passed = null
    }
  }

  /** The tables held, and how many bytes they take. */
  private[replay] def cached: Map[String, Long] = cache.synchronized {
    cache.asScala.view.mapValues(_.retainedBytes).toMap
  }

  /**
   * The log of a table. Logs of the same table share its newest snapshot, but each reaches the file system with its own
   * configuration: whoever may not list the log does not get to see the snapshot.
   */
  def forTable(table: Path, conf: Configuration): DeltaLog =
    forTable(table, conf, NeverDistributed)

  /** @param bytesInMemory a checkpoint of more bytes makes distributed snapshots */
  def forTable(table: Path, conf: Configuration, bytesInMemory: Long): DeltaLog = {
    val root = qualified(table, conf)
    val newest = cache.synchronized(cache.computeIfAbsent(root.toString, _ => new Newest))
    new DeltaLog(root, conf, newest, bytesInMemory)
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
