package io.deltaic.spark.catalog

import java.time.format.DateTimeFormatter
import java.time.{DateTimeException, LocalDateTime, ZoneId}
import java.util.Locale

import io.deltaic.replay.DeltaLog

/**
 * The time travel suffix of a path or name, as in delta-spark: `@v12`, or a time in the
 * session's time zone as `@yyyyMMddHHmmssSSS`, such as `@20240131120000000`.
 *
 * @param base the path or name before it
 */
private[spark] final case class TimeTravelSuffix(base: String, private val text: String) {

  def asOf(log: DeltaLog, zone: ZoneId): AsOf =
    if (text.startsWith("v")) TimeTravel.version(log, text.drop(1))
    else
      try {
        val local = LocalDateTime.parse(text, TimeTravelSuffix.timeFormat)
        AsOf.Time(local.atZone(zone).toInstant.toEpochMilli)
      } catch {
        case _: DateTimeException =>
          throw TimeTravel.invalid(log, s"@$text", "it is not a time of the form yyyyMMddHHmmssSSS")
      }
}

private[spark] object TimeTravelSuffix {
  private val version = """(.+)@[vV](\d+)""".r
  private val time = """(.+)@(\d{17})""".r
  private val timeFormat = DateTimeFormatter.ofPattern("uuuuMMddHHmmssSSS", Locale.ROOT)

  def of(text: String): Option[TimeTravelSuffix] = text match {
    case version(base, number) => Some(TimeTravelSuffix(base, s"v$number"))
    case time(base, digits) => Some(TimeTravelSuffix(base, digits))
    case _ => None
  }
}
