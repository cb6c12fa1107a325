package io.deltaic.spark.stream

import java.util.{Map => JMap, Optional}

import scala.jdk.CollectionConverters._
import scala.jdk.OptionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.{ChangeFeedOptions, DeltaicTable, TimeTravel}
import io.deltaic.spark.changes.ChangesTable

/**
 * A table as a source of micro-batches: first the initial snapshot, then each commit.
 *
 * [[StreamStrategy]] plans a batch as a scan of its files, so that a batch prunes columns, skips
 * files and filters deleted rows as any query does. Spark's own plan for it never runs.
 *
 * @param table with whose columns all rows are read
 * @param tracking of the schema, if the user wants it
 * @param checkpoint the source's checkpoint directory
 */
private[spark] final class TableStream[A] private (
    spark: SparkSession,
    table: DeltaicTable,
    options: StreamOptions,
    items: StreamedItems[A],
    content: StreamContent[A],
    tracking: Option[SchemaTracking],
    checkpoint: String
) extends MicroBatchStream
    with SupportsTriggerAvailableNow
    with ReportsSourceMetrics {

  private val log = table.log
  private val tableId = table.snapshot.metadata.id

  /** The last version to read, for a bounded stream. */
  private var bound: Option[Long] = None

  private var checkedStart = false

  /** The items that [[latestOffset]] has found. The next batch reads them, and may be planned several times. */
  private var found: Option[FoundBatch[A]] = None

  override def initialOffset(): StreamOffset = initial

  private lazy val initial: StreamOffset = {
    requireExtension()
    val offset =
      deserializeOffset(new StartFile(spark, checkpoint).offsetFor(options.start)(start.json()))
    tracking.foreach(_.startAt(offset.version))
    offset
  }

  private def requireExtension(): Unit = table.requireExtension("a streamed read")

  private def start: StreamOffset = options.start match {
    case StreamStart.Everything => StreamOffset.ofSnapshot(tableId, newest)
    case StreamStart.Latest => StreamOffset.ofCommit(tableId, newest + 1)
    case StreamStart.Version(version) =>
      val latest = log.latest().version
      if (version > latest)
        throw StreamOptions.invalid(
          log.table.toString,
          ChangeFeedOptions.StartingVersion,
          version.toString,
          s"the table's latest version is $latest"
        )
      StreamOffset.ofCommit(tableId, version)
    case StreamStart.Time(timestamp) => StreamOffset.ofCommit(tableId, versionFrom(timestamp))
  }

  private def newest: Long = bound.getOrElse(log.latest().version)

  /** The first version committed at that time or after. */
  private def versionFrom(timestamp: String): Long = {
    def invalid(reason: String): Nothing = throw StreamOptions.invalid(
      log.table.toString,
      ChangeFeedOptions.StartingTimestamp,
      timestamp,
      reason
    )
    val timestampMs = TimeTravel.timestampMs(spark, timestamp)
      .getOrElse(invalid("it is not a timestamp, such as 2026-01-31 or 2026-01-31 12:30:00"))
    val version = log.versionFrom(timestampMs)
    val latest = log.latest().version
    if (version > latest && !ChangeFeedOptions.allowsOutOfRange(spark))
      invalid(
        s"the table's latest version, $latest, is older. To read only later commits, set " +
          s"${ChangeFeedOptions.StartingVersion}=latest; to accept any time, set " +
          "spark.deltaic.changeDataFeed.timestampOutOfRange.enabled to true"
      )
    version
  }

  override def deserializeOffset(json: String): StreamOffset = {
    val offset = StreamOffset.parse(log.table.toString, json)
    requireSameTable(started = offset.tableId, current = tableId)
    offset
  }

  override def getDefaultReadLimit: ReadLimit = options.limit

  override def prepareForTriggerAvailableNow(): Unit = bound = Some(log.latest().version)

  override def latestOffset(): Offset =
    throw new UnsupportedOperationException("latestOffset(start, limit) is to be called")

  /** The end of the next batch; null if there is nothing new. */
  override def latestOffset(startOffset: Offset, limit: ReadLimit): Offset = {
    val start = offsetOf(startOffset)
    val latest = log.latest()
    requireSameTable(started = tableId, current = latest.metadata.id)
    tracking.foreach(_.continueAfter(if (start.inSnapshot) start.version else start.lastVersion))
    if (tracking.isDefined && start.index == StreamOffset.SchemaChange)
      // Spark commits a batch when it finds another one after it.
      start.copy(index = StreamOffset.AfterSchemaChange)
    else {
      // A query that ended right after it had planned the batch after the change has not recorded the change.
      if (start.isAtSchemaChange) tracking.foreach(_.recordChange(start.version))
      endOfNext(start, bound.getOrElse(latest.version), AdmissionLimits.of(limit))
    }
  }

  private def endOfNext(start: StreamOffset, last: Long, limits: AdmissionLimits): StreamOffset = {
    requireReadableFrom(start)
    val places = items
      .after(start, last)
      .takeWhile(_.item match {
        case Some(item) => limits.admits(content.numFiles(item), content.sizeBytes(item))
        case None => limits.admits(0, 0L)
      })
    val admitted = upToSchemaChange(places).toVector
    admitted.lastOption.fold[StreamOffset](null) { last =>
      val end = endOf(start, last)
      found = Some(FoundBatch(start, end, admitted.flatMap(_.item)))
      end
    }
  }

  private def upToSchemaChange(places: Iterator[StreamPlace[A]]): Iterator[StreamPlace[A]] = {
    val (before, from) = places.span(!_.isSchemaChange)
    before ++ from.take(1)
  }

  /** Checks the start of this run of the stream; later commits are checked when they are read. */
  private def requireReadableFrom(start: StreamOffset): Unit =
    if (!checkedStart) {
      if (!start.inSnapshot && tracking.isEmpty) items.requireReadableAt(start.version)
      checkedStart = true
    }

  private def endOf(start: StreamOffset, last: StreamPlace[A]): StreamOffset =
    if (last.isLast) StreamOffset.ofCommit(tableId, last.version + 1)
    else {
      val inSnapshot = start.inSnapshot && last.version == start.version
      StreamOffset(tableId, last.version, last.index, inSnapshot)
    }

  /** A scan of what a batch reads. */
  private[spark] def scanBuilder(
      startOffset: Offset,
      endOffset: Offset
  ): StreamContent.Builder = {
    val end = offsetOf(endOffset)
    val start = initialOffsetOf(offsetOf(startOffset), end)
    if (start.isAfter(end))
      throw DeltaicException(
        "DELTAIC_STREAM_CHECKPOINT_INCOMPATIBLE",
        Map("table" -> log.table.toString, "start" -> start.json(), "end" -> end.json())
      )
    tracking.foreach(_.continueIn(start.version, end.lastVersion.max(start.version)))
    requireReadableFrom(start)
    val all = found.collect { case FoundBatch(`start`, `end`, same) => same }.getOrElse {
      val between = itemsBetween(start, end)
      found = Some(FoundBatch(start, end, between))
      between
    }
    if (!end.inSnapshot) items.releaseSnapshot()
    content.scanBuilder(all, end.lastVersion)
  }

  private def itemsBetween(start: StreamOffset, end: StreamOffset): IndexedSeq[A] = {
    val between = items
      .after(start, end.lastVersion)
      .takeWhile { place =>
        place.version < end.version || (place.version == end.version && place.index <= end.index)
      }
      .toVector
    // A batch that was planned without a tracked schema.
    between.find(_.isSchemaChange).foreach(change =>
      throw tracking.get.batchAcrossChange(change.version)
    )
    between.flatMap(_.item)
  }

  /**
   * An engine that does not record the initial offset of a stream has started with the snapshot
   * that contains the end of the first batch, or with the one right before it.
   */
  private def initialOffsetOf(start: StreamOffset, end: StreamOffset): StreamOffset = {
    val latestStart = if (end.inSnapshot) end.version else end.version - 1
    val tooLate = start.version > latestStart || (end.inSnapshot && start.version != end.version)
    if (start.inSnapshot && tooLate) start.copy(version = latestStart) else start
  }

  private[spark] def source: Table = content.source

  private def offsetOf(offset: Offset): StreamOffset = offset match {
    case parsed: StreamOffset => parsed
    case other => deserializeOffset(other.json())
  }

  private def requireSameTable(started: String, current: String): Unit =
    if (started != current)
      throw DeltaicException(
        "DELTAIC_STREAM_TABLE_REPLACED",
        Map("table" -> log.table.toString, "expected" -> started, "found" -> current)
      )

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = unplanned

  override def createReaderFactory(): PartitionReaderFactory = unplanned

  private def unplanned: Nothing = {
    requireExtension()
    throw new IllegalStateException(s"$this was to be planned as a scan of its files")
  }

  /** Called when the next batch is found. */
  override def commit(end: Offset): Unit = {
    val offset = offsetOf(end)
    if (offset.isAtSchemaChange) tracking.foreach(_.recordChange(offset.version))
  }

  private val backlog = new Backlog(items, content)

  /** `numCommitsOutstanding`, `numFilesOutstanding` and `numBytesOutstanding` of the progress report. */
  override def metrics(consumed: Optional[Offset]): JMap[String, String] =
    consumed.toScala.fold(Map.empty[String, String]) { offset =>
      backlog.metrics(offsetOf(offset), log.latest().version)
    }.asJava

  override def stop(): Unit = {
    found = None
    items.releaseAll()
  }

  override def toString: String = s"deltaic stream of ${log.table}"
}

private[spark] object TableStream {

  /** A stream of the rows that a table gets. */
  def ofRows(
      spark: SparkSession,
      table: DeltaicTable,
      settings: CaseInsensitiveStringMap,
      checkpoint: String
  ): TableStream[_] = of(spark, table, settings, checkpoint) { (streamed, options) =>
    new AddedRows(spark, table, streamed, options, settings)
  }

  /**
   * A stream of the changes of a table.
   *
   * @param changes has their columns
   */
  def ofChanges(
      spark: SparkSession,
      table: DeltaicTable,
      changes: ChangesTable,
      settings: CaseInsensitiveStringMap,
      checkpoint: String
  ): TableStream[_] = of(spark, table, settings, checkpoint) { (streamed, options) =>
    new StreamedChanges(spark, table, changes, streamed, options, settings)
  }

  private def of[A](
      spark: SparkSession,
      table: DeltaicTable,
      settings: CaseInsensitiveStringMap,
      checkpoint: String
  )(contentOf: (StreamedCommits, StreamOptions) => StreamContent[A]): TableStream[A] = {
    val log = table.log
    val read = table.snapshot
    val options = StreamOptions.of(log.table.toString, settings)
    val tracking = SchemaTracking.of(spark, log, read, options, settings, checkpoint)
    val streamed = new StreamedCommits(log, read, options, tracking)
    val content = contentOf(streamed, options)
    val fileSystem = settings.asCaseSensitiveMap.asScala.toMap
    val items =
      new StreamedItems(spark, log, read, content, streamed, options, tracking, fileSystem)
    new TableStream(spark, table, options, items, content, tracking, checkpoint)
  }
}

/** The items between two offsets. */
private final case class FoundBatch[A](
    start: StreamOffset,
    end: StreamOffset,
    items: IndexedSeq[A]
)
