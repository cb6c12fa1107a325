package io.deltaic.protocol

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

/** The table properties that the JVM needs. Names, defaults and minima are those of `table-properties.json`. */
private[deltaic] object TableProperties {

  private lazy val byName: Map[String, JsonNode] =
    SharedResource
      .json("table-properties.json")
      .elements
      .asScala
      .map(record => record.get("name").textValue -> record)
      .toMap

  private val amount = """[+-]?(?:\d+(?:\.\d{0,9})?|\.\d{1,9})"""
  private val interval = s"(?i)\\s*(?:interval\\s+)?((?:$amount\\s+[a-z]+\\s*)+)".r
  private val part = s"(?i)($amount)\\s+([a-z]+)".r

  private val unitMicros = Map(
    "week" -> 604800000000L,
    "day" -> 86400000000L,
    "hour" -> 3600000000L,
    "minute" -> 60000000L,
    "second" -> 1000000L,
    "millisecond" -> 1000L,
    "microsecond" -> 1L
  )

  /** So that subtracting it from the current time does not overflow. */
  private val LongestMs = BigInt(Long.MaxValue / 2)

  /** How long a tombstone is retained; None, which means forever, if the property cannot be parsed. */
  def deletedFileRetentionMs(metadata: Metadata): Option[Long] =
    value(metadata.configuration, "delta.deletedFileRetentionDuration").flatMap(intervalMs)

  /** How long a `txn` is retained after its last update; None means forever. */
  def transactionRetentionMs(metadata: Metadata): Option[Long] =
    value(metadata.configuration, "delta.setTransactionRetentionDuration").flatMap(intervalMs)

  /** Whether only writers, and not users, may set the property. */
  def isInternal(name: String): Boolean =
    byName.get(name).exists(_.path("internal").asBoolean(false))

  /** Whether the value of a property, or its default, is `true`; any other value is false. */
  def isTrue(configuration: Map[String, String], name: String): Boolean =
    value(configuration, name).exists(_.equalsIgnoreCase("true"))

  /** The value of a property of type `int`, or its default; None if it is no such number, or below the minimum. */
  def int(configuration: Map[String, String], name: String): Option[Int] =
    value(configuration, name)
      .filter(_.matches("[+-]?[0-9]+"))
      .flatMap(_.toIntOption)
      .filter(_ >= byName.get(name).fold(Int.MinValue)(_.path("minimum").asInt(Int.MinValue)))

  /** The value of a property, or its default. */
  def value(configuration: Map[String, String], name: String): Option[String] =
    explicitValue(configuration, name)
      .orElse(byName.get(name).flatMap(record => Option(record.path("default").textValue)))

  /** The explicit value of a property, under its name or else under an older spelling, which other writers use. */
  def explicitValue(configuration: Map[String, String], name: String): Option[String] =
    (name +: olderSpellings.getOrElse(name, Nil)).flatMap(configuration.get).headOption

  private lazy val olderSpellings: Map[String, Seq[String]] = byName.toSeq
    .flatMap { case (name, record) =>
      val newer = Option(record.path("replacedBy").textValue).toSeq ++
        record.path("standsFor").elements.asScala.map(_.textValue)
      newer.map(_ -> name)
    }
    .groupMap { case (newer, _) => newer } { case (_, name) => name }

  /**
   * A duration such as `interval 1 week` in milliseconds; None if its length is not fixed. The syntax is Spark's: only
   * seconds may have a fraction.
   */
  def intervalMs(text: String): Option[Long] = text match {
    case interval(parts) =>
      val micros = part.findAllMatchIn(parts).map { m =>
        val unit = m.group(2).toLowerCase(java.util.Locale.ROOT).stripSuffix("s")
        unitMicros.get(unit).filter(_ => unit == "second" || !m.group(1).contains('.'))
          .map(size => (BigDecimal(m.group(1)) * size).toBigInt)
      }.toSeq
      // A duration that overflows is treated as forever.
      Option.when(micros.forall(_.isDefined))(micros.flatten.sum)
        .filter(_ >= 0)
        .map(_ / 1000)
        .filter(_ <= LongestMs)
        .map(_.toLong)
    case _ => None
  }
}
