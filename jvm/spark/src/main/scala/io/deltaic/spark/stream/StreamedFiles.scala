package io.deltaic.spark.stream

import org.apache.spark.sql.classic.SparkSession
import org.slf4j.LoggerFactory

import io.deltaic.protocol.{AddFile, DeltaicException}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.scan.{SnapshotFiles, TableSchema}

/**
 * A place in the files of a stream.
 *
 * @param file none at the start of a commit
 * @param isLast whether it is the last file of its commit or snapshot
 */
private[stream] final case class StreamedFile(
    version: Long,
    index: Long,
    file: Option[AddFile],
    isLast: Boolean
)

/** The files of a stream in order: those of the table it begins with, and those that each commit adds. */
private[stream] final class StreamedFiles(
    spark: SparkSession,
    log: DeltaLog,
    read: Snapshot,
    options: StreamOptions
) {
  import StreamedFiles._

  private val commits = new StreamedCommits(log, read, options)

  /** Of the snapshot that the stream begins with, while it is being read. */
  private var ordered: Option[(Long, IndexedSeq[AddFile])] = None

  /**
   * What comes after an offset.
   *
   * @param last the last version to read
   */
  def after(offset: StreamOffset, last: Long): Iterator[StreamedFile] = {
    val all =
      if (!offset.inSnapshot) ofCommits(offset.version, last)
      else ofSnapshot(offset.version).iterator ++ ofCommits(offset.version + 1, last)
    all.filter(file => file.version > offset.version || file.index > offset.index)
  }

  /** Fails if rows of the versions from this one on cannot be read with the columns of the stream. */
  def requireReadableFrom(version: Long): Unit =
    if (version < read.version) {
      // Without it, the commits that are read tell.
      val found =
        try Some(log.at(version))
        catch { case e: DeltaicException if isLoss(e) => None }
      found.foreach(snapshot => commits.requireReadable(snapshot.metadata, version))
    }

  def forgetSnapshot(): Unit = ordered = None

  private def ofSnapshot(version: Long): IndexedSeq[StreamedFile] =
    indexed(version, filesOfSnapshot(version))

  private def filesOfSnapshot(version: Long): IndexedSeq[AddFile] = ordered match {
    case Some((`version`, files)) => files
    case _ =>
      val snapshot = if (version == read.version) read else opened(version)
      val files = SnapshotFiles(spark, log, snapshot, TableSchema.of(snapshot)).select(Nil, Nil)
      val sorted = files.sortBy(file => (file.modificationTimeMs, file.path))
      ordered = Some((version, sorted))
      sorted
  }

  private def opened(version: Long): Snapshot = {
    val snapshot =
      try log.at(version)
      catch { case e: DeltaicException if isLoss(e) => throw lost(version, log.earliestVersion) }
    commits.requireReadable(snapshot.metadata, version)
    snapshot
  }

  private def ofCommits(first: Long, last: Long): Iterator[StreamedFile] =
    if (first > last) Iterator.empty
    else
      log.commitFiles(firstHeld(first), last).flatMap { commit =>
        val start = StreamedFile(commit.version, StreamOffset.Base, None, isLast = false)
        Iterator.single(start) ++ indexed(commit.version, commits.filesOf(commit))
      }

  /** The first of these commits that the log still holds. */
  private def firstHeld(version: Long): Long =
    if (log.holdsCommit(version)) version
    else {
      val earliest = log.earliestCommit
      if (options.failsOnLoss) throw lost(version, earliest)
      logger.warn(
        "Table {}: commits {} to {} are gone, and the stream goes on without them",
        log.table,
        version,
        earliest - 1
      )
      earliest
    }

  private def indexed(version: Long, files: IndexedSeq[AddFile]): IndexedSeq[StreamedFile] =
    files.indices.map { i =>
      StreamedFile(version, i.toLong, Some(files(i)), isLast = i == files.size - 1)
    }

  private def lost(version: Long, earliest: Long) = new DeltaicException(
    "DELTAIC_STREAM_DATA_LOST",
    Map(
      "table" -> log.table.toString,
      "version" -> version.toString,
      "earliest" -> earliest.toString
    )
  )
}

private object StreamedFiles {
  private val logger = LoggerFactory.getLogger(classOf[StreamedFiles])

  /** Whether an error says that the log no longer leads to a version. */
  private def isLoss(e: DeltaicException): Boolean =
    Set("DELTAIC_VERSION_NOT_FOUND", "DELTAIC_LOG_INCOMPLETE")(e.condition)
}
