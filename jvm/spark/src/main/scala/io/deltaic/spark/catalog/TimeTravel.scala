package io.deltaic.spark.catalog

import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Literal}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.TimestampType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.DeltaicException
import io.deltaic.replay.DeltaLog

/** Which version a reader asks for. */
private[spark] object TimeTravel {
  private val versionOption = "versionAsOf"
  private val timestampOption = "timestampAsOf"

  /** The version that the options of a read name, if any. */
  def versionOf(
      spark: SparkSession,
      log: DeltaLog,
      options: CaseInsensitiveStringMap
  ): Option[Long] =
    (Option(options.get(versionOption)), Option(options.get(timestampOption))) match {
      case (Some(_), Some(_)) =>
        throw invalid(log, s"$versionOption and $timestampOption", "give one of the two")
      case (Some(version), None) => Some(parseVersion(log, version))
      case (None, Some(timestamp)) =>
        Some(log.versionAt(parseTimestampMs(spark, log, timestamp)))
      case (None, None) => None
    }

  def parseVersion(log: DeltaLog, version: String): Long =
    version.trim.toLongOption
      .filter(_ >= 0)
      .getOrElse(throw invalid(log, version, "a version is a whole number from 0 on"))

  /** As Spark casts a string to a timestamp, in the session's time zone. */
  def parseTimestampMs(spark: SparkSession, log: DeltaLog, timestamp: String): Long = {
    val zone = Some(spark.sessionState.conf.sessionLocalTimeZone)
    val micros = Cast(Literal(timestamp), TimestampType, zone, EvalMode.TRY).eval()
    if (micros == null) throw invalid(log, timestamp, "it cannot be read as a timestamp")
    Math.floorDiv(micros.asInstanceOf[Long], 1000L)
  }

  private def invalid(log: DeltaLog, value: String, reason: String): DeltaicException =
    new DeltaicException(
      "DELTAIC_INVALID_TIME_TRAVEL",
      Map("table" -> log.table.toString, "value" -> value, "reason" -> reason)
    )
}
