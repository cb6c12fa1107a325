package io.deltaic.spark.stream

import org.apache.spark.sql.classic.SparkSession
import org.slf4j.LoggerFactory

import io.deltaic.log.CommitFile
import io.deltaic.protocol.{AddFile, DeltaicException, DeltaicThrowable}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.scan.files.{ScanFilters, SnapshotFiles}
import io.deltaic.spark.schema.{ColumnMapping, TableSchema}

/**
 * A place in the files of a stream.
 *
 * @param file none at the start of a commit
 * @param isLast whether it is the last file of its commit or snapshot
 */
private[stream] final case class StreamPlace(
    version: Long,
    index: Long,
    file: Option[AddFile],
    isLast: Boolean
)

/**
 * The files of a stream in order: those of the initial snapshot, and those that each commit adds.
 *
 * @param read the version with whose columns all rows are read
 * @param settings of the read, which may configure the file system
 */
private[stream] final class StreamedFiles(
    spark: SparkSession,
    log: DeltaLog,
    read: Snapshot,
    options: StreamOptions,
    settings: Map[String, String]
) {
  import StreamedFiles._

  private val commits = new StreamedCommits(log, read, options)

  /** The files of the initial snapshot, while it is being read. */
  private var ofSnapshot = CachedFiles.none

  /** The files of the last commit, which may take several batches. */
  private var ofCommit = CachedFiles.none

  /** The commits after that, one of which may have been read: the next batch continues with them. */
  private var following = Following.none

  /**
   * The places after an offset.
   *
   * @param last the last version to read
   */
  def after(offset: StreamOffset, last: Long): Iterator[StreamPlace] =
    if (offset.inSnapshot)
      places(offset.version, filesOfSnapshot(offset.version), offset.index + 1) ++
        placesFrom(offset.version + 1, last)
    else if (offset.index < 0)
      placesFrom(offset.version, last).dropWhile { place =>
        place.version == offset.version && place.index < 0
      }
    else
      placesFrom(offset.version, last).dropWhile { place =>
        place.version == offset.version && place.index <= offset.index
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
        case Some(snapshot) => commits.requireReadable(snapshot.metadata, checkedVersion)
        // The commit may still exist if its version cannot be reconstructed because older commits were cleaned up.
        case None
            if ColumnMapping.isUsed(read) ||
            (options.failsOnLoss && !log.hasCommit(checkedVersion)) =>
          throw lost(checkedVersion, log.earliestCommit)
        case None => ()
      }
    }
  }

  def releaseSnapshot(): Unit = ofSnapshot = CachedFiles.none

  def releaseAll(): Unit = {
    releaseSnapshot()
    ofCommit = CachedFiles.none
    following = Following.none
  }

  private def filesOfSnapshot(version: Long): IndexedSeq[AddFile] = {
    if (ofSnapshot.version != version) {
      val snapshot = if (version == read.version) read else opened(version)
      val schema = TableSchema.of(snapshot)
      val files = SnapshotFiles(spark, log, snapshot, schema, settings).select(ScanFilters.none)
      ofSnapshot = CachedFiles(version, files.sortBy(file => (file.modificationTimeMs, file.path)))
    }
    ofSnapshot.files
  }

  private def opened(version: Long): Snapshot = {
    val snapshot =
      try log.at(version)
      catch {
        case e: DeltaicThrowable if isLoss(e) =>
          throw fail("DELTAIC_STREAM_SNAPSHOT_LOST", version, log.earliestVersion)
      }
    commits.requireReadable(snapshot.metadata, version)
    snapshot
  }

  private def placesFrom(first: Long, last: Long): Iterator[StreamPlace] =
    if (first > last) Iterator.empty
    else if (ofCommit.version == first)
      placesOfCommit(first, ofCommit.files) ++ placesFrom(first + 1, last)
    else
      commitsFrom(first, last).flatMap { commit =>
        ofCommit = CachedFiles(commit.version, commits.filesOf(commit))
        placesOfCommit(commit.version, ofCommit.files)
      }

  /** The commits of these versions that are still in the log. */
  private def commitsFrom(first: Long, last: Long): Iterator[CommitFile] =
    Iterator.unfold(first) { version =>
      if (version > last) None else nextCommit(version, last).map(c => (c, c.version + 1))
    }

  private def nextCommit(version: Long, last: Long): Option[CommitFile] = {
    val found =
      if (following.version == version && following.commits.hasNext && mayFollow(version))
        following.commits
      else held(log.commitFiles(firstHeld(version), last))
    // An iterator that has failed is not used again.
    following = Following.none
    found.nextOption().map { commit =>
      following = Following(commit.version + 1, found)
      commit
    }
  }

  /** A stream that skips missing commits checks first whether they exist. */
  private def mayFollow(version: Long): Boolean = options.failsOnLoss || log.hasCommit(version)

  private def placesOfCommit(version: Long, files: IndexedSeq[AddFile]): Iterator[StreamPlace] =
    Iterator.single(StreamPlace(version, StreamOffset.Base, None, isLast = false)) ++
      places(version, files, 0)

  private def places(
      version: Long,
      files: IndexedSeq[AddFile],
      from: Long
  ): Iterator[StreamPlace] = (from.toInt until files.size).iterator.map { i =>
    StreamPlace(version, i.toLong, Some(files(i)), isLast = i == files.size - 1)
  }

  /** The first of these commits that is still in the log. */
  private def firstHeld(version: Long): Long =
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
  private def held(found: Iterator[CommitFile]): Iterator[CommitFile] = new Iterator[CommitFile] {
    override def hasNext: Boolean = found.hasNext
    override def next(): CommitFile =
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

private object StreamedFiles {
  private val logger = LoggerFactory.getLogger(classOf[StreamedFiles])

  private final case class CachedFiles(version: Long, files: IndexedSeq[AddFile])

  private object CachedFiles {
    val none: CachedFiles = CachedFiles(-1L, Vector.empty)
  }

  /** Commits from a version on. */
  private final case class Following(version: Long, commits: Iterator[CommitFile])

  private object Following {
    val none: Following = Following(-1L, Iterator.empty)
  }

  /** Whether an error means that the log no longer has a version. */
  private def isLoss(e: DeltaicThrowable): Boolean =
    Set("DELTAIC_VERSION_NOT_FOUND", "DELTAIC_LOG_INCOMPLETE")(e.condition)
}
