package io.deltaic.spark.skipping

import java.time.{DateTimeException, LocalDate}

/**
 * Dates and timestamps as statistics spell them, with four-digit years: `2024-02-29`,
 * `2024-02-29T23:59:59.123Z`, `2024-02-29T23:59:59.123+05:30`, and without a zone. Written by hand
 * because a snapshot holds millions of them.
 */
private[skipping] object StatsTimestamps {

  /** The result for an invalid string; no date or timestamp equals it. */
  val Unknown: Long = Long.MinValue

  private val MicrosPerSecond = 1000000L
  private val SecondsPerDay = 86400L
  private val NoZone = Int.MinValue
  private val BadZone = Int.MaxValue

  def epochDays(s: String): Long = if (s.length == 10) daysAt(s) else Unknown

  /** Microseconds since the epoch. A string without a zone is not an instant, so the result is unknown. */
  def timestampMicros(s: String): Long = {
    val zoneAt = zoneStart(s)
    val offset = zoneSeconds(s, zoneAt)
    val local = if (offset == NoZone || offset == BadZone) Unknown else localMicros(s, zoneAt)
    if (local == Unknown) Unknown else local - offset * MicrosPerSecond
  }

  /**
   * Microseconds of the wall clock. A `Z`, which some writers add, is ignored; a plain date means its midnight.
   */
  def timestampNtzMicros(s: String): Long =
    if (s.length == 10) {
      val days = daysAt(s)
      if (days == Unknown) Unknown else days * SecondsPerDay * MicrosPerSecond
    } else {
      val zoneAt = zoneStart(s)
      val offset = zoneSeconds(s, zoneAt)
      if (offset == NoZone || offset == 0) localMicros(s, zoneAt) else Unknown
    }

  /** `yyyy-MM-dd` at the start of `s`. */
  private def daysAt(s: String): Long = {
    val year = digits(s, 0, 4)
    val month = digits(s, 5, 2)
    val day = digits(s, 8, 2)
    if (year < 0 || month < 0 || day < 0 || s.charAt(4) != '-' || s.charAt(7) != '-') Unknown
    else {
      try LocalDate.of(year, month, day).toEpochDay
      catch { case _: DateTimeException => Unknown }
    }
  }

  /** `yyyy-MM-dd'T'HH:mm:ss` and a fraction of any length, truncated to microseconds. */
  private def localMicros(s: String, end: Int): Long = {
    if (end < 19 || (s.charAt(10) != 'T' && s.charAt(10) != ' ')) return Unknown
    val days = daysAt(s)
    val hour = digits(s, 11, 2)
    val minute = digits(s, 14, 2)
    val second = digits(s, 17, 2)
    val fraction = fractionMicros(s, end)
    val spelled = s.charAt(13) == ':' && s.charAt(16) == ':' && fraction >= 0
    val inRange = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60
    if (days == Unknown || !spelled || !inRange) Unknown
    else {
      val seconds = days * SecondsPerDay + hour * 3600L + minute * 60L + second
      seconds * MicrosPerSecond + fraction
    }
  }

  private def fractionMicros(s: String, end: Int): Int =
    if (end == 19) 0
    else if (s.charAt(19) != '.' || end == 20) -1
    else {
      var micros = 0
      var k = 0
      while (k < math.max(6, end - 20)) {
        val digit = if (20 + k < end) s.charAt(20 + k) - '0' else 0
        if (digit < 0 || digit > 9) return -1
        if (k < 6) micros = micros * 10 + digit
        k += 1
      }
      micros
    }

  /** Where the zone starts; the end when there is none. */
  private def zoneStart(s: String): Int = {
    var i = 19
    while (i < s.length && (s.charAt(i) == '.' || Character.isDigit(s.charAt(i)))) i += 1
    math.min(i, s.length)
  }

  private def zoneSeconds(s: String, at: Int): Int =
    if (at == s.length) NoZone
    else if (s.charAt(at) == 'Z') { if (at + 1 == s.length) 0 else BadZone }
    else if (s.length != at + 6 || s.charAt(at + 3) != ':') BadZone
    else {
      val seconds = digits(s, at + 1, 2) * 3600 + digits(s, at + 4, 2) * 60
      val unsigned = digits(s, at + 1, 2) >= 0 && digits(s, at + 4, 2) >= 0
      s.charAt(at) match {
        case '+' if unsigned => seconds
        case '-' if unsigned => -seconds
        case _ => BadZone
      }
    }

  /** The value of `count` ASCII digits, or -1. */
  private def digits(s: String, from: Int, count: Int): Int = {
    var number = 0
    var i = from
    while (i < from + count) {
      val c = if (i < s.length) s.charAt(i) else ' '
      if (c < '0' || c > '9') return -1
      number = number * 10 + (c - '0')
      i += 1
    }
    number
  }
}
