package io.deltaic.spark.catalog

import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Literal}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.TimestampType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.replay.{DeltaLog, Snapshot}

/** The version of a time travel query. */
private[spark] sealed trait AsOf

private[spark] object AsOf {
  final case class Version(version: Long) extends AsOf

  /** The last version committed at or before that time. */
  final case class Time(timestampMs: Long) extends AsOf
}

/** Resolves the version of a time travel query, and loads it. */
private[spark] object TimeTravel {
  private val versionOption = "versionAsOf"
  private val timestampOption = "timestampAsOf"

  /**
   * The version in the options of a read or in the suffix of its path, if any; it must not be in
   * both.
   */
  def of(
      spark: SparkSession,
      found: LocatedTable,
      options: CaseInsensitiveStringMap
  ): Option[AsOf] = {
    val log = found.log
    val byOption =
      (Option(options.get(versionOption)), Option(options.get(timestampOption))) match {
        case (Some(_), Some(_)) => throw specifiedTwice(log, s"$versionOption and $timestampOption")
        case (Some(number), None) => Some(version(log, number))
        case (None, Some(timestamp)) =>
          Some(AsOf.Time(parseTimestampMs(spark, log, timestamp)))
        case (None, None) => None
      }
    byOption.foreach(_ => refuseSuffix(found))
    byOption.orElse(found.suffix)
  }

  /** A version given as a string. */
  def version(log: DeltaLog, version: String): AsOf = AsOf.Version(parseVersion(log, version))

  def parseVersion(log: DeltaLog, version: String): Long = version.trim.toLongOption
    .filter(_ >= 0)
    .getOrElse(throw invalid(log, version, "a version is a whole number from 0 on"))

  def refuseSuffix(found: LocatedTable): Unit =
    if (found.suffix.isDefined)
      throw specifiedTwice(found.log, "a suffix of its name and something else")

  def open(spark: SparkSession, log: DeltaLog, asOf: AsOf): Snapshot = {
    val snapshot = asOf match {
      case AsOf.Version(version) => log.at(version)
      case AsOf.Time(timestampMs) => log.at(log.versionAt(timestampMs))
    }
    DeletedFileRetention.check(spark, log, snapshot)
    snapshot
  }

  def invalid(log: DeltaLog, value: String, reason: String): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_INVALID_TIME_TRAVEL",
      Map("table" -> log.table.toString, "value" -> value, "reason" -> reason)
    )

  private def specifiedTwice(log: DeltaLog, values: String): DeltaicThrowable =
    invalid(log, values, "specify one of the two")

  def parseTimestampMs(spark: SparkSession, log: DeltaLog, timestamp: String): Long =
    timestampMs(spark, timestamp)
      .getOrElse(throw invalid(log, timestamp, "it cannot be read as a timestamp"))

  /** As Spark casts a string to a timestamp, in the session's time zone; none if it cannot be cast. */
  def timestampMs(spark: SparkSession, timestamp: String): Option[Long] = {
    val zone = Some(spark.sessionState.conf.sessionLocalTimeZone)
    val micros = Cast(Literal(timestamp), TimestampType, zone, EvalMode.TRY).eval()
    Option(micros).map(value => Math.floorDiv(value.asInstanceOf[Long], 1000L))
  }
}
