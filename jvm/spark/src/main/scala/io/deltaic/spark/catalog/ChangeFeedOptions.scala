package io.deltaic.spark.catalog

import java.util.Locale

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable, Metadata}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.SessionSettings
import io.deltaic.spark.changes.{ChangesTable, ShownChanges}
import io.deltaic.spark.scan.RowTracking

/** The options of a read that ask for what changed in a table instead of for its rows. */
private[spark] object ChangeFeedOptions {
  val ReadChangeFeed = "readChangeFeed"
  val StartingVersion = "startingVersion"
  val StartingTimestamp = "startingTimestamp"
  val EndingVersion = "endingVersion"
  val EndingTimestamp = "endingTimestamp"

  private val asking = Seq(ReadChangeFeed, "readChangeData")
  private val all =
    asking ++ Seq(StartingVersion, StartingTimestamp, EndingVersion, EndingTimestamp)

  def areIn(options: CaseInsensitiveStringMap): Boolean = asking.exists { option =>
    Option(options.get(option)).exists { value =>
      value.toLowerCase(Locale.ROOT).toBooleanOption.getOrElse(
        throw invalid(option, value, "it must be true or false")
      )
    }
  }

  /** The other options. */
  def removedFrom(options: CaseInsensitiveStringMap): CaseInsensitiveStringMap = {
    val kept = options.asCaseSensitiveMap.asScala.filterNot { case (key, _) =>
      all.exists(_.equalsIgnoreCase(key))
    }
    new CaseInsensitiveStringMap(kept.asJava)
  }

  /** Whether changes may be asked for from a time on that is after the last commit. */
  def allowsOutOfRange(spark: SparkSession): Boolean =
    SessionSettings.isOn(spark, "changeDataFeed.timestampOutOfRange.enabled")

  def invalid(option: String, value: String, reason: String): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_CHANGES_OPTION_INVALID",
      Map("option" -> option, "value" -> value, "reason" -> reason)
    )
}

/**
 * Finds out which changes a reader asks for.
 *
 * @param snapshot the newest version, or the one the user named
 * @param mayBeEmpty whether an end right before the start, or a start right after the latest version, is
 *   no mistake
 */
private[spark] final class ChangeFeedRequest(
    spark: SparkSession,
    log: DeltaLog,
    name: String,
    snapshot: Snapshot,
    timeTravelled: Boolean,
    options: CaseInsensitiveStringMap,
    mayBeEmpty: Boolean,
    identifiesRows: Boolean
) {
  import ChangeFeedOptions._
  import ChangeFeedRequest._

  private val allowsOutOfRange = ChangeFeedOptions.allowsOutOfRange(spark)

  /** The changes as a table; everything about the range that does not need its commits is checked. */
  def table: ChangesTable = {
    val first = bound(StartingVersion, StartingTimestamp, startingAt)
      .getOrElse(throw fail("DELTAIC_CHANGES_START_MISSING"))
    val last = bound(EndingVersion, EndingTimestamp, endingAt)
    val start = Option.unless(isEmpty(first, last))(at(first.version))
    // Files that later versions do not have, and change data files, may be gone.
    start.foreach(DeletedFileRetention.check(spark, log, _))
    val read = start.fold(snapshot)(columnsOf(_, last))
    if (identifiesRows) (start.toSeq :+ read).foreach(requireTracked(_, first, last))
    val shown = ShownChanges(
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
    new ChangesTable(spark, log, name, shown)
  }

  private def requireTracked(version: Snapshot, first: Bound, last: Option[Bound]): Unit =
    if (RowTracking.of(version.protocol, version.metadata).isEmpty)
      throw fail(
        "DELTAIC_CHANGES_ROWS_NOT_TRACKED",
        "version" -> version.version.toString,
        "first" -> first.version.toString,
        "last" -> last.fold(snapshot.version)(_.version).toString
      )

  /** Whether there is nothing between the ends, which is not an error for two times. */
  private def isEmpty(first: Bound, last: Option[Bound]): Boolean = {
    val afterLatest = first.version > snapshot.version
    val rightAfter = mayBeEmpty && first.version == snapshot.version + 1
    // Both ends may be left out of a range of one version.
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
   * The version whose columns the changes are shown with: by default the one the table is read at,
   * and with column mapping, where columns are renamed and dropped, the last version of the range.
   */
  private def columnsOf(start: Snapshot, last: Option[Bound]): Snapshot = {
    val mode = SessionSettings
      .get(spark, "changeDataFeed.defaultSchemaModeForColumnMappingTable")
      .getOrElse("endVersion")
    val end = last.map(_.version).filter(_ < snapshot.version)
    if (timeTravelled || end.isEmpty || !mode.equalsIgnoreCase("endVersion")) snapshot
    else if (Seq(start, snapshot).exists(s => mapsColumns(s.metadata))) at(end.get)
    else snapshot
  }

  private def mapsColumns(metadata: Metadata): Boolean =
    metadata.configuration
      .get("delta.columnMapping.mode")
      .exists(!_.equalsIgnoreCase("none"))

  private def at(version: Long): Snapshot =
    if (version == snapshot.version) snapshot else log.at(version)

  private def bound(
      versionOption: String,
      timestampOption: String,
      versionOf: Long => Long
  ): Option[Bound] =
    (stated(versionOption), stated(timestampOption)) match {
      case (Some(_), Some(text)) =>
        throw invalid(timestampOption, text, s"$versionOption is given, too, and one can hold")
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

  /** A bound without a value is none that the user can mean: the feed would have no end where one is asked for. */
  private def stated(option: String): Option[String] = Option.when(options.containsKey(option)) {
    Option(options.get(option)).getOrElse(throw invalid(option, "null", "it must not be null"))
  }

  /** The first version committed at that time or after. */
  private def startingAt(timestampMs: Long): Long = {
    val version = log.versionFrom(timestampMs)
    val namedMs = if (mayBeEmpty) timestampMs - 1 else timestampMs
    // The log says what is wrong with a time after its latest commit.
    if (log.versionFrom(namedMs) > log.latest().version && !allowsOutOfRange) log.versionAt(namedMs)
    else version
  }

  /** The last version committed at that time or before. */
  private def endingAt(timestampMs: Long): Long = {
    val latest = log.latest().version
    if (allowsOutOfRange && log.versionFrom(timestampMs) > latest) latest
    else log.versionAt(timestampMs)
  }

  private def fail(condition: String, parameters: (String, String)*): DeltaicThrowable =
    DeltaicException(condition, Map("table" -> log.table.toString) ++ parameters)
}

private object ChangeFeedRequest {

  /** @param timestampMs when the user named a time */
  private final case class Bound(version: Long, timestampMs: Option[Long])
}
