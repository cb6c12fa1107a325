package io.deltaic.spark.catalog

import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Literal}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.TimestampType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.replay.{DeltaLog, Snapshot}

/** The version that a reader asks for. */
private[spark] sealed trait AsOf

private[spark] object AsOf {
  final case class Version(version: Long) extends AsOf

  /** The last version committed at that time or before. */
  final case class Time(timestampMs: Long) extends AsOf
}

/** Finds out which version a reader asks for, and opens it. */
private[spark] object TimeTravel {
  private val versionOption = "versionAsOf"
  private val timestampOption = "timestampAsOf"

  /**
   * What the options of a read and the suffix of its path ask for, if anything; they must not both ask
   * for something.
   */
  def of(
      spark: SparkSession,
      found: FoundTable,
      options: CaseInsensitiveStringMap
  ): Option[AsOf] = {
    val log = found.log
    val byOption =
      (Option(options.get(versionOption)), Option(options.get(timestampOption))) match {
        case (Some(_), Some(_)) => throw inSeveralWays(log, s"$versionOption and $timestampOption")
        case (Some(number), None) => Some(version(log, number))
        case (None, Some(timestamp)) =>
          Some(AsOf.Time(parseTimestampMs(spark, log, timestamp)))
        case (None, None) => None
      }
    byOption.foreach(_ => refuseSuffix(found))
    byOption.orElse(found.suffix)
  }

  /** A version given as text. */
  def version(log: DeltaLog, version: String): AsOf = AsOf.Version(parseVersion(log, version))

  def parseVersion(log: DeltaLog, version: String): Long = version.trim.toLongOption
    .filter(_ >= 0)
    .getOrElse(throw invalid(log, version, "a version is a whole number from 0 on"))

  def refuseSuffix(found: FoundTable): Unit =
    if (found.suffix.isDefined)
      throw inSeveralWays(found.log, "a suffix of its name and something else")

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

  private def inSeveralWays(log: DeltaLog, ways: String): DeltaicThrowable =
    invalid(log, ways, "give one of the two")

  def parseTimestampMs(spark: SparkSession, log: DeltaLog, timestamp: String): Long =
    timestampMs(spark, timestamp)
      .getOrElse(throw invalid(log, timestamp, "it cannot be read as a timestamp"))

  /** As Spark casts a string to a timestamp, in the session's time zone; none if it cannot be cast. */
  def timestampMs(spark: SparkSession, timestamp: String): Option[Long] = {
    val zone = Some(spark.sessionState.conf.sessionLocalTimeZone)
    val micros = Cast(Literal(timestamp), TimestampType, zone, EvalMode.TRY).eval()
    Option(micros).map(known => Math.floorDiv(known.asInstanceOf[Long], 1000L))
  }
}
