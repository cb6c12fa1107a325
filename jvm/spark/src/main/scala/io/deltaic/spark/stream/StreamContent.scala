package io.deltaic.spark.stream

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.connector.read.{ScanBuilder, SupportsPushDownRequiredColumns}
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.log.CommitFile
import io.deltaic.protocol.{AddFile, DeltaicException}
import io.deltaic.replay.Snapshot
import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.changes._
import io.deltaic.spark.scan.files.{FileSplits, FilterableFiles}
import io.deltaic.spark.scan.{ScanContext, TableScanBuilder}

/**
 * What a stream reads of the initial snapshot and of each commit. Its items are counted as delta-spark counts them, so
 * that an offset within a commit means the same in both engines.
 */
private[stream] trait StreamContent[A] {

  /** The table that has the columns of the rows. */
  def source: Table

  /** The commits of these versions, both ends inclusive, each with its time if the rows contain it. */
  def commits(first: Long, last: Long): Iterator[(CommitFile, Long)]

  /** @param files of the snapshot, in the order of the stream */
  def ofSnapshot(snapshot: Snapshot, files: IndexedSeq[AddFile]): IndexedSeq[A]

  def ofCommit(commit: CommitFile, timestampMs: Long): IndexedSeq[A]

  def numFiles(item: A): Int

  def sizeBytes(item: A): Long

  /** A scan of these items. */
  def scanBuilder(items: IndexedSeq[A], lastVersion: Long): StreamContent.Builder
}

private[stream] object StreamContent {
  type Builder = ScanBuilder
    with SupportsPushDownCatalystFilters
    with SupportsPushDownRequiredColumns
}

/** The rows of files that commits add. */
private[stream] final class AddedRows(
    spark: SparkSession,
    override val source: DeltaicTable,
    streamed: StreamedCommits,
    options: StreamOptions,
    settings: CaseInsensitiveStringMap
) extends StreamContent[AddFile] {
  private val log = source.log

  override def commits(first: Long, last: Long): Iterator[(CommitFile, Long)] =
    log.commitFiles(first, last).map(_ -> 0L)

  override def ofSnapshot(snapshot: Snapshot, files: IndexedSeq[AddFile]): IndexedSeq[AddFile] =
    files

  override def ofCommit(commit: CommitFile, timestampMs: Long): IndexedSeq[AddFile] =
    streamed.filesOf(commit)

  override def numFiles(item: AddFile): Int = 1

  override def sizeBytes(item: AddFile): Long = item.sizeBytes

  override def scanBuilder(
      items: IndexedSeq[AddFile],
      lastVersion: Long
  ): StreamContent.Builder = {
    val files = new FilterableFiles(
      log.table,
      lastVersion,
      items.filterNot(file => options.excludes(file.path)),
      source.tableSchema,
      FileSplits.sessionZone(spark)
    )
    val context = ScanContext(isStreaming = true)
    new TableScanBuilder(spark, files, source.tableSchema, settings, context)
  }
}

/**
 * The changes that commits make: the rows of the initial snapshot as inserts, then the change data feed.
 *
 * Changes that belong together, such as the two images of an updated row, are one item: see [[CommitChanges.steps]].
 */
private[stream] final class StreamedChanges(
    spark: SparkSession,
    table: DeltaicTable,
    override val source: ChangesTable,
    streamed: StreamedCommits,
    options: StreamOptions,
    settings: CaseInsensitiveStringMap
) extends StreamContent[Seq[CommittedChange]] {
  private val log = table.log

  requireRecorded(table.snapshot)

  override def commits(first: Long, last: Long): Iterator[(CommitFile, Long)] =
    log.commits(first, last)

  override def ofSnapshot(
      snapshot: Snapshot,
      files: IndexedSeq[AddFile]
  ): IndexedSeq[Seq[CommittedChange]] = {
    requireRecorded(snapshot)
    val timestampMs = log.commits(snapshot.version, snapshot.version).next()._2
    files.map { file =>
      Seq(CommittedChange(CommitChanges.insertOf(file), snapshot.version, timestampMs))
    }
  }

  override def ofCommit(
      commit: CommitFile,
      timestampMs: Long
  ): IndexedSeq[Seq[CommittedChange]] = {
    streamed.requireReadable(commit)
    commit.metadata.foreach { metadata =>
      val protocol = commit.protocol.getOrElse(table.snapshot.protocol)
      if (!ChangeFeed.isRecorded(protocol, metadata)) throw notRecorded(commit.version)
    }
    if (options.skipsChanges && commit.removes.exists(_.dataChange)) Vector.empty
    else
      CommitChanges.steps(log.table, commit)
        .map(_.map(CommittedChange(_, commit.version, timestampMs)))
  }

  override def numFiles(item: Seq[CommittedChange]): Int = item.size

  override def sizeBytes(item: Seq[CommittedChange]): Long = item.map(_.change.file.sizeBytes).sum

  override def scanBuilder(
      items: IndexedSeq[Seq[CommittedChange]],
      lastVersion: Long
  ): StreamContent.Builder = {
    val read = items.flatten.filterNot(committed => options.excludes(committed.change.file.path))
    val changes = ListedChanges(log.table, lastVersion, read, isStreaming = true)
    new ChangesScanBuilder(spark, changes, table.tableSchema, settings)
  }

  private def requireRecorded(snapshot: Snapshot): Unit =
    if (!ChangeFeed.isRecorded(snapshot.protocol, snapshot.metadata))
      throw notRecorded(snapshot.version)

  private def notRecorded(version: Long) = DeltaicException(
    "DELTAIC_CHANGES_NOT_RECORDED",
    Map(
      "table" -> log.table.toString,
      "version" -> version.toString,
      "first" -> version.toString,
      "last" -> version.toString
    )
  )
}
