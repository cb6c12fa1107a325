package io.deltaic.spark.catalog

import java.util.Locale

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.changes.{ChangesRequest, ChangesTable}
import io.deltaic.spark.schema.{ColumnMapping, RowTracking}
import io.deltaic.spark.util.{SessionSettings, UnsupportedOperation}

/** The options of a read of the change data feed. */
private[spark] object ChangeFeedOptions {
  val ReadChangeFeed = "readChangeFeed"
  val StartingVersion = "startingVersion"
  val StartingTimestamp = "startingTimestamp"
  val EndingVersion = "endingVersion"
  val EndingTimestamp = "endingTimestamp"

  private val enabling = Seq(ReadChangeFeed, "readChangeData")
  private val all =
    enabling ++ Seq(StartingVersion, StartingTimestamp, EndingVersion, EndingTimestamp)

  def areIn(options: CaseInsensitiveStringMap): Boolean = enabling.exists { option =>
    Option(options.get(option)).exists { value =>
      value.toLowerCase(Locale.ROOT).toBooleanOption.getOrElse(
        throw invalid(option, value, "it must be true or false")
      )
    }
  }

  /** Refuses the options in a read of rows: the rows must not be returned for a read of changes. */
  def refuse(log: DeltaLog, options: CaseInsensitiveStringMap): Unit =
    if (areIn(options))
      throw UnsupportedOperation(
        log.table.toString,
        s"reading with option $ReadChangeFeed, where the query names a version " +
          "or is a stream, or the session lacks " +
          "spark.sql.extensions=io.deltaic.spark.DeltaicExtension,"
      )

  /** The other options. */
  def removedFrom(options: CaseInsensitiveStringMap): CaseInsensitiveStringMap = {
    val kept = options.asCaseSensitiveMap.asScala.filterNot { case (key, _) =>
      all.exists(_.equalsIgnoreCase(key))
    }
    new CaseInsensitiveStringMap(kept.asJava)
  }

  /** Whether the range may start at a time after the last commit. */
  def allowsOutOfRange(spark: SparkSession): Boolean =
    SessionSettings.isOn(spark, "changeDataFeed.timestampOutOfRange.enabled")

  def invalid(option: String, value: String, reason: String): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_CHANGES_OPTION_INVALID",
      Map("option" -> option, "value" -> value, "reason" -> reason)
    )
}

/**
 * Resolves the range and the schema of a change data feed read.
 *
 * @param tableVersion the newest version, or the one of a time travel query
 * @param mayBeEmpty whether an end right before the start, or a start right after the latest version, is
 *   allowed
 */
private[spark] final class ChangeFeedRequest(
    spark: SparkSession,
    tableVersion: TableVersion,
    name: String,
    options: CaseInsensitiveStringMap,
    mayBeEmpty: Boolean,
    identifiesRows: Boolean
) {
  import ChangeFeedOptions._
  import ChangeFeedRequest._

  private val log = tableVersion.log
  private val snapshot = tableVersion.snapshot
  private val allowsOutOfRange = ChangeFeedOptions.allowsOutOfRange(spark)

  /** The changes as a table. All checks of the range that do not need its commits are made. */
  def table: ChangesTable = new ChangesTable(spark, log, name, request)

  private def request: ChangesRequest = {
    val first = bound(StartingVersion, StartingTimestamp, startingAt)
      .getOrElse(throw fail("DELTAIC_CHANGES_START_MISSING"))
    val last = bound(EndingVersion, EndingTimestamp, endingAt)
    val start = Option.unless(isEmpty(first, last))(at(first.version))
    // Files removed by later versions, and change data files, may have been deleted.
    start.foreach(DeletedFileRetention.check(spark, log, _))
    val read = start.fold(snapshot)(columnsOf(_, last))
    if (identifiesRows) (start.toSeq :+ read).foreach(requireTracked(_, first, last))
    ChangesRequest(
      first.version,
      last.map(_.version),
      start,
      read,
      checksSchema =
        !SessionSettings.isOn(
          spark,
          "changeDataFeed.unsafeBatchReadOnIncompatibleSchemaChanges.enabled"
        ),
      identifiesRows
    )
  }

  /**
   * The same for a read that may be the source of a stream, to which the range does not apply: an error of the range is
   * thrown when a batch query is planned.
   */
  def mayBeStreamed(streaming: ChangesTable.Streaming): ChangesTable = {
    val (shown, failure) =
      try (request, None)
      catch {
        case error: DeltaicThrowable => (ChangesRequest.none(snapshot), Some(error))
      }
    new ChangesTable(spark, log, name, shown, Some(streaming), failure)
  }

  private def requireTracked(version: Snapshot, first: Bound, last: Option[Bound]): Unit =
    if (RowTracking.of(version.protocol, version.metadata).isEmpty)
      throw fail(
        "DELTAIC_CHANGES_ROWS_NOT_TRACKED",
        "version" -> version.version.toString,
        "first" -> first.version.toString,
        "last" -> last.fold(snapshot.version)(_.version).toString
      )

  /** Whether the range is empty, which is not an error for two timestamps. */
  private def isEmpty(first: Bound, last: Option[Bound]): Boolean = {
    val afterLatest = first.version > snapshot.version
    val rightAfter = mayBeEmpty && first.version == snapshot.version + 1
    // Both bounds of a range of one version may be exclusive.
    val rightBefore = mayBeEmpty &&
      last.exists(end => end.version < first.version && end.version >= first.version - 2)
    if (afterLatest && !allowsOutOfRange && !rightAfter)
      throw fail(
        "DELTAIC_CHANGES_START_AFTER_LATEST",
        "start" -> first.version.toString,
        "latest" -> snapshot.version.toString
      )
    val betweenTimes = (first.timestampMs, last.flatMap(_.timestampMs)) match {
      case (Some(start), Some(end)) => start <= end && last.exists(_.version == first.version - 1)
      case _ => false
    }
    val reversed = last.exists { end =>
      end.version < first.version ||
      end.timestampMs.exists(time => first.timestampMs.exists(_ > time))
    }
    if (reversed && !betweenTimes && !rightBefore && !(afterLatest && allowsOutOfRange))
      throw fail(
        "DELTAIC_CHANGES_END_BEFORE_START",
        "start" -> first.version.toString,
        "end" -> last.fold("")(_.version.toString)
      )
    afterLatest || betweenTimes || rightBefore
  }

  /**
   * The version whose schema the changes are read with: by default the one of the table that is read,
   * and with column mapping, where columns are renamed and dropped, the last version of the range.
   */
  private def columnsOf(start: Snapshot, last: Option[Bound]): Snapshot = {
    val mode = SessionSettings
      .get(spark, "changeDataFeed.defaultSchemaModeForColumnMappingTable")
      .getOrElse("endVersion")
    val end = last.map(_.version).filter(_ < snapshot.version)
    if (tableVersion.isTimeTravel || end.isEmpty || !mode.equalsIgnoreCase("endVersion")) snapshot
    else if (Seq(start, snapshot).exists(ColumnMapping.isUsed)) at(end.get)
    else snapshot
  }

  private def at(version: Long): Snapshot =
    if (version == snapshot.version) snapshot else log.at(version)

  private def bound(
      versionOption: String,
      timestampOption: String,
      versionOf: Long => Long
  ): Option[Bound] =
    (valueOf(versionOption), valueOf(timestampOption)) match {
      case (Some(_), Some(text)) =>
        val reason = s"$versionOption is specified, too, and the two exclude each other"
        throw invalid(timestampOption, text, reason)
      case (Some(text), None) =>
        val version = text.trim.toLongOption.filter(_ >= 0).getOrElse {
          throw invalid(versionOption, text, "a version is a whole number from 0 on")
        }
        Some(Bound(version, None))
      case (None, timestamp) =>
        timestamp.map { text =>
          val timestampMs = TimeTravel.parseTimestampMs(spark, log, text)
          Bound(versionOf(timestampMs), Some(timestampMs))
        }
    }

  /** An option with a null value is an error: to ignore it would leave the range without that bound. */
  private def valueOf(option: String): Option[String] = Option.when(options.containsKey(option)) {
    Option(options.get(option)).getOrElse(throw invalid(option, "null", "it must not be null"))
  }

  /** The first version committed at or after that time. */
  private def startingAt(timestampMs: Long): Long = {
    val version = log.versionFrom(timestampMs)
    val givenMs = if (mayBeEmpty) timestampMs - 1 else timestampMs
    // For a time after the latest commit, the log throws the error.
    if (log.versionFrom(givenMs) > log.latest().version && !allowsOutOfRange) log.versionAt(givenMs)
    else version
  }

  /** The last version committed at or before that time. */
  private def endingAt(timestampMs: Long): Long = {
    val latest = log.latest().version
    if (allowsOutOfRange && log.versionFrom(timestampMs) > latest) latest
    else log.versionAt(timestampMs)
  }

  private def fail(condition: String, parameters: (String, String)*): DeltaicThrowable =
    DeltaicException(condition, Map("table" -> log.table.toString) ++ parameters)
}

private object ChangeFeedRequest {

  /** @param timestampMs set if the user specified a timestamp */
  private final case class Bound(version: Long, timestampMs: Option[Long])
}
