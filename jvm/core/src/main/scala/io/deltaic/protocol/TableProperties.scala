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

  private val interval = """(?i)\s*(?:interval\s+)?((?:[+-]?\d+\s+[a-z]+\s*)+)""".r
  private val part = """(?i)([+-]?\d+)\s+([a-z]+)""".r

  private val unitMs = Map(
    "week" -> 604800000L,
    "day" -> 86400000L,
    "hour" -> 3600000L,
    "minute" -> 60000L,
    "second" -> 1000L,
    "millisecond" -> 1L
  )

  /** So that a time of today minus it is still a number. */
  private val LongestMs = BigInt(Long.MaxValue / 2)

  /** How long a tombstone is kept; None when the property cannot be understood, and then it is kept for ever. */
  def deletedFileRetentionMs(metadata: Metadata): Option[Long] =
    value(metadata, "delta.deletedFileRetentionDuration").flatMap(intervalMs)

  /** How long a `txn` is kept after it was updated last; None for ever. */
  def transactionRetentionMs(metadata: Metadata): Option[Long] =
    value(metadata, "delta.setTransactionRetentionDuration").flatMap(intervalMs)

  /** Whether only writers set the property, and users cannot. */
  def isInternal(name: String): Boolean = internal(name)

  private lazy val internal: Set[String] = SharedResource
    .json("table-properties.json")
    .elements
    .asScala
    .filter(_.path("internal").asBoolean(false))
    .map(_.get("name").textValue)
    .toSet

  /** What a property is set to, or its default. */
  def value(metadata: Metadata, name: String): Option[String] =
    set(metadata.configuration, name).orElse(defaults.get(name))

  /** What a property is set to: by its name, else by an older spelling of that, which other writers store. */
  def set(configuration: Map[String, String], name: String): Option[String] =
    (name +: olderSpellings.getOrElse(name, Nil)).flatMap(configuration.get).headOption

  private lazy val olderSpellings: Map[String, Seq[String]] = SharedResource
    .json("table-properties.json")
    .elements
    .asScala
    .filter(_.path("replacedBy").isTextual)
    .toSeq
    .groupMap(_.get("replacedBy").textValue)(_.get("name").textValue)

  /** Whether a property or an option is on; whatever is not `true` is off. */
  def isTrue(text: String): Boolean = text.trim.equalsIgnoreCase("true")

  /** A duration such as `interval 1 week` in milliseconds; None if its length is not fixed. */
  def intervalMs(text: String): Option[Long] = text match {
    case interval(parts) =>
      val amounts = part.findAllMatchIn(parts).map { m =>
        for {
          amount <- m.group(1).toLongOption
          unit <- unitMs.get(m.group(2).toLowerCase(java.util.Locale.ROOT).stripSuffix("s"))
        } yield BigInt(amount) * unit
      }.toSeq
      // A longer one than can be counted is for ever, as far as anyone can tell.
      Option.when(amounts.forall(_.isDefined))(amounts.flatten.sum)
        .filter(sum => sum >= 0 && sum <= LongestMs)
        .map(_.toLong)
    case _ => None
  }
}
