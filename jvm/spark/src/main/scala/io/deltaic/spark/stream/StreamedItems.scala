package io.deltaic.spark.stream

import scala.collection.mutable

import org.apache.spark.sql.classic.SparkSession
import org.slf4j.LoggerFactory

import io.deltaic.log.CommitFile
import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.scan.files.{ScanFilters, SnapshotFiles}
import io.deltaic.spark.schema.{ColumnMapping, TableSchema}

/**
 * A place in a stream.
 *
 * @param item none at the start of a commit, and at a change of the tracked schema
 * @param isLast whether it is the last item of its commit or snapshot
 */
private[stream] final case class StreamPlace[A](
    version: Long,
    index: Long,
    item: Option[A],
    isLast: Boolean
) {
  def isSchemaChange: Boolean = index == StreamOffset.SchemaChange
}

/**
 * The items of a stream in order: those of the initial snapshot, and those of each commit.
 *
 * @param read the version with whose columns all rows are read
 * @param tracking knows the commits that change the schema
 * @param settings of the read, which may configure the file system
 */
private[stream] final class StreamedItems[A](
    spark: SparkSession,
    log: DeltaLog,
    read: Snapshot,
    content: StreamContent[A],
    streamed: StreamedCommits,
    options: StreamOptions,
    tracking: Option[SchemaTracking],
    settings: Map[String, String]
) {
  import StreamedItems._

  /** The items of the initial snapshot, while it is being read. */
  private var ofSnapshot = CachedItems.none[A]

  /** The items of the last commit, which may take several batches. */
  private var ofCommit = CachedItems.none[A]

  /** The items of later commits that have been read ahead, by version. */
  private val ahead = mutable.TreeMap.empty[Long, CachedItems[A]]

  /** The commits after that, one of which may have been read: the next batch continues with them. */
  private var following = Following.none

  /**
   * The places after an offset.
   *
   * @param last the last version to read
   */
  def after(offset: StreamOffset, last: Long): Iterator[StreamPlace[A]] =
    if (offset.inSnapshot)
      places(offset.version, itemsOfSnapshot(offset.version), (offset.index + 1).max(0L)) ++
        placesFrom(offset.version + 1, last)
    else
      placesFrom(offset.version, last).dropWhile { place =>
        place.version == offset.version && place.index <= offset.index
      }

  /** What remains of the snapshot or commit that an offset is in, as far as it has been read; and the next version. */
  def restOf(offset: StreamOffset): (IndexedSeq[A], Long) = {
    val cached = if (offset.inSnapshot) ofSnapshot else ofCommit
    val isWithin = offset.inSnapshot || !offset.isBeforeFiles
    val rest =
      if (isWithin && cached.version == offset.version) cached.items.drop(offset.index.toInt + 1)
      else Vector.empty
    (rest, if (isWithin) offset.version + 1 else offset.version)
  }

  /**
   * The items of these versions, both ends inclusive. They are kept, and not read again by the next batches.
   *
   * @return none if they are too many
   */
  def readAhead(first: Long, last: Long): Option[IndexedSeq[A]] = {
    ahead --= ahead.keysIterator.takeWhile(_ < first).toVector
    val current = if (ofCommit.version >= first) ofCommit.items else Vector.empty
    var version = Seq(first, ofCommit.version + 1, ahead.lastOption.fold(0L)(_._1 + 1)).max
    var count = ahead.valuesIterator.map(_.items.size).sum
    while (version <= last && count < MaxAhead) {
      nextCommit(version, last).foreach { case (commit, timestampMs) =>
        val found = itemsOf(commit, timestampMs)
        ahead(commit.version) = found
        count += found.items.size
        version = commit.version
      }
      version += 1
    }
    Option.when(version > last)(current ++ ahead.valuesIterator.flatMap(_.items))
  }

  /**
   * Fails if the rows of a version cannot be read with the columns of the stream. Later commits are
   * checked when they are read.
   */
  def requireReadableAt(version: Long): Unit = {
    val latest = log.latest().version
    if (version != read.version) {
      val checkedVersion = version.min(latest)
      val found =
        try Some(log.at(checkedVersion))
        catch { case e: DeltaicThrowable if isLoss(e) => None }
      found match {
        case Some(snapshot) => streamed.requireReadable(snapshot.metadata, checkedVersion)
        // The commit may still exist if its version cannot be reconstructed because older commits were cleaned up.
        case None
            if ColumnMapping.isUsed(read) ||
            (options.failsOnLoss && !log.hasCommit(checkedVersion)) =>
          throw lost(checkedVersion, log.earliestCommit)
        case None => ()
      }
    }
  }

  def releaseSnapshot(): Unit = ofSnapshot = CachedItems.none

  def releaseAll(): Unit = {
    releaseSnapshot()
    ofCommit = CachedItems.none
    ahead.clear()
    following = Following.none
  }

  private def itemsOfSnapshot(version: Long): IndexedSeq[A] = {
    if (ofSnapshot.version != version) {
      // The definition of a tracked schema has no files.
      val isRead = version == read.version && tracking.isEmpty
      val snapshot = if (isRead) read else opened(version)
      val schema = TableSchema.of(snapshot)
      val files = SnapshotFiles(spark, log, snapshot, schema, settings).select(ScanFilters.none)
      val inOrder = files.sortBy(file => (file.modificationTimeMs, file.path))
      ofSnapshot = CachedItems(version, content.ofSnapshot(snapshot, inOrder))
    }
    ofSnapshot.items
  }

  private def opened(version: Long): Snapshot = {
    val snapshot =
      try log.at(version)
      catch {
        case e: DeltaicThrowable if isLoss(e) =>
          throw fail("DELTAIC_STREAM_SNAPSHOT_LOST", version, log.earliestVersion)
      }
    streamed.requireReadable(snapshot.metadata, version)
    snapshot
  }

  private def placesFrom(first: Long, last: Long): Iterator[StreamPlace[A]] =
    if (first > last) Iterator.empty
    else if (ofCommit.version == first)
      placesOfCommit(ofCommit) ++ placesFrom(first + 1, last)
    else if (ahead.contains(first)) {
      ofCommit = ahead.remove(first).get
      placesOfCommit(ofCommit) ++ placesFrom(first + 1, last)
    } else
      commitsFrom(first, last).flatMap { case (commit, timestampMs) =>
        ofCommit = itemsOf(commit, timestampMs)
        placesOfCommit(ofCommit)
      }

  private def itemsOf(commit: CommitFile, timestampMs: Long): CachedItems[A] = {
    val changesSchema = tracking.exists(_.isChange(commit))
    CachedItems(commit.version, content.ofCommit(commit, timestampMs), changesSchema)
  }

  /** The commits of these versions that are still in the log. */
  private def commitsFrom(first: Long, last: Long): Iterator[(CommitFile, Long)] =
    Iterator.unfold(first) { version =>
      if (version > last) None else nextCommit(version, last).map(c => (c, c._1.version + 1))
    }

  private def nextCommit(version: Long, last: Long): Option[(CommitFile, Long)] = {
    val found =
      if (following.version == version && following.commits.hasNext && mayFollow(version))
        following.commits
      else failIfMissing(content.commits(firstAvailable(version), last))
    // An iterator that has failed is not used again.
    following = Following.none
    found.nextOption().map { commit =>
      following = Following(commit._1.version + 1, found)
      commit
    }
  }

  /** A stream that skips missing commits checks first whether they exist. */
  private def mayFollow(version: Long): Boolean = options.failsOnLoss || log.hasCommit(version)

  private def placesOfCommit(commit: CachedItems[A]): Iterator[StreamPlace[A]] = {
    def before(index: Long) = StreamPlace[A](commit.version, index, None, isLast = false)
    val change = Option.when(commit.changesSchema)(before(StreamOffset.SchemaChange))
    Iterator.single(before(StreamOffset.Base)) ++ change ++ places(commit.version, commit.items, 0)
  }

  private def places(
      version: Long,
      items: IndexedSeq[A],
      from: Long
  ): Iterator[StreamPlace[A]] = (from.toInt until items.size).iterator.map { i =>
    StreamPlace(version, i.toLong, Some(items(i)), isLast = i == items.size - 1)
  }

  /** The first of these commits that is still in the log. */
  private def firstAvailable(version: Long): Long =
    if (log.hasCommit(version)) version
    else {
      val earliest = log.earliestCommit
      if (options.failsOnLoss) throw lost(version, earliest)
      requireReadableAt(earliest)
      logger.warn(
        "Table {}: commits {} to {} are missing, the stream continues without them",
        log.table,
        version,
        earliest - 1
      )
      earliest
    }

  /** Log cleanup may run while commits are read. */
  private def failIfMissing(found: Iterator[(CommitFile, Long)]): Iterator[(CommitFile, Long)] =
    new Iterator[(CommitFile, Long)] {
      override def hasNext: Boolean = found.hasNext
      override def next(): (CommitFile, Long) =
        try found.next()
        catch {
          case e: DeltaicThrowable if e.condition == "DELTAIC_COMMIT_NOT_FOUND" =>
            throw lost(e.parameters("version").toLong, log.earliestCommit)
        }
    }

  private def lost(version: Long, earliest: Long) =
    fail("DELTAIC_STREAM_DATA_LOST", version, earliest)

  private def fail(condition: String, version: Long, earliest: Long) = DeltaicException(
    condition,
    Map(
      "table" -> log.table.toString,
      "version" -> version.toString,
      "earliest" -> earliest.toString
    )
  )
}

private object StreamedItems {

  /** How many items are read ahead at most, before the last commit of them. */
  private val MaxAhead = 10000

  private val logger = LoggerFactory.getLogger(classOf[StreamedItems[_]])

  /** @param changesSchema whether the commit changes the tracked schema */
  private final case class CachedItems[A](
      version: Long,
      items: IndexedSeq[A],
      changesSchema: Boolean = false
  )

  private object CachedItems {
    def none[A]: CachedItems[A] = CachedItems(-1L, Vector.empty)
  }

  /** Commits from a version on, each with its time. */
  private final case class Following(version: Long, commits: Iterator[(CommitFile, Long)])

  private object Following {
    val none: Following = Following(-1L, Iterator.empty)
  }

  /** Whether an error means that the log no longer has a version. */
  private def isLoss(e: DeltaicThrowable): Boolean =
    Set("DELTAIC_VERSION_NOT_FOUND", "DELTAIC_LOG_INCOMPLETE")(e.condition)
}
