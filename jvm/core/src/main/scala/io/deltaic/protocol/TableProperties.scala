package io.deltaic.protocol

import scala.jdk.CollectionConverters._

/** The table properties that reading needs. Names and defaults are those of `table-properties.json`. */
private[deltaic] object TableProperties {

  private lazy val defaults: Map[String, String] = SharedResource
    .json("table-properties.json")
    .elements
    .asScala
    .filter(_.path("default").isTextual)
    .map(p => p.get("name").textValue -> p.get("default").textValue)
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
    value(metadata, "delta.deletedFileRetentionDuration").flatMap(intervalMs)

  /** How long a `txn` is retained after its last update; None means forever. */
  def transactionRetentionMs(metadata: Metadata): Option[Long] =
    value(metadata, "delta.setTransactionRetentionDuration").flatMap(intervalMs)

  /** Whether only writers, and not users, may set the property. */
  def isInternal(name: String): Boolean = internal(name)

  private lazy val internal: Set[String] = SharedResource
    .json("table-properties.json")
    .elements
    .asScala
    .filter(_.path("internal").asBoolean(false))
    .map(_.get("name").textValue)
    .toSet

  /** The value of a property, or its default. */
  def value(metadata: Metadata, name: String): Option[String] =
    set(metadata.configuration, name).orElse(defaults.get(name))

  /** The explicit value of a property, under its name or else under an older spelling, which other writers use. */
  def set(configuration: Map[String, String], name: String): Option[String] =
    (name +: olderSpellings.getOrElse(name, Nil)).flatMap(configuration.get).headOption

  private lazy val olderSpellings: Map[String, Seq[String]] = SharedResource
    .json("table-properties.json")
    .elements
    .asScala
    .filter(_.path("replacedBy").isTextual)
    .toSeq
    .groupMap(_.get("replacedBy").textValue)(_.get("name").textValue)

  /** Whether a property or an option is `true`; any other value is false. */
  def isTrue(text: String): Boolean = text.trim.equalsIgnoreCase("true")

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
