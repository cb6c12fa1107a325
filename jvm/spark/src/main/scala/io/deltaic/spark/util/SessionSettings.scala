package io.deltaic.spark.util

import java.util.Locale

import scala.util.Try

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/** Session settings with our prefix or delta-spark's; ours takes precedence where both are set. */
private[spark] object SessionSettings {
  val Prefix = "spark.deltaic."
  private val Prefixes = Seq(Prefix, "spark.databricks.delta.")

  /** Set after each commit of the session, by delta-spark's name alone: jobs read it, and users do not set it. */
  val LastCommitVersion = "spark.databricks.delta.lastCommitVersionInSession"

  /** @param name without the prefix */
  def get(spark: SparkSession, name: String): Option[String] =
    entry(spark, name).map { case (_, text) => text }

  /** The full name by which a setting is set, and its value. */
  private def entry(spark: SparkSession, name: String): Option[(String, String)] =
    Prefixes.iterator.map(_ + name).flatMap(key =>
      spark.conf.getOption(key).map(key -> _)
    ).nextOption()

  /**
   * The value of a setting; None if it is not set.
   *
   * @param name without the prefix
   * @param reason which values are valid
   * @param parse the value of a string; None if it is invalid
   */
  def parsed[T](spark: SparkSession, name: String, reason: String)(
      parse: String => Option[T]
  ): Option[T] = entry(spark, name).map { case (key, text) =>
    parse(text.trim).getOrElse(throw invalid(key, text, reason))
  }

  /** @param name without the prefix */
  def isOn(spark: SparkSession, name: String, default: Boolean = false): Boolean =
    flag(spark, name).getOrElse(default)

  /**
   * Whether a setting is on; None if it is not set.
   *
   * @param name without the prefix
   */
  def flag(spark: SparkSession, name: String): Option[Boolean] =
    parsed(spark, name, "it is true or false")(parseFlag)

  def parseFlag(text: String): Option[Boolean] = text.trim.toLowerCase(Locale.ROOT).toBooleanOption

  /** @param name without the prefix */
  def bytes(spark: SparkSession, name: String, default: Long): Long =
    entry(spark, name).fold(default) { case (key, text) => parseBytes(key, text) }

  /**
   * A positive number of bytes; None if it is not set.
   *
   * @param name without the prefix
   */
  def positiveBytes(spark: SparkSession, name: String): Option[Long] =
    parsed(spark, name, "it is a number of bytes from 1 on, such as 64m or 1g") { text =>
      Try(bytesOf(text)).toOption.filter(_ > 0)
    }

  /**
   * A number of bytes, which may be 0; None if it is not set.
   *
   * @param name without the prefix
   */
  def bytesFromZero(spark: SparkSession, name: String): Option[Long] =
    parsed(spark, name, "it is a number of bytes from 0 on, such as 64m or 1g") { text =>
      Try(bytesOf(text)).toOption.filter(_ >= 0)
    }

  /** A number of bytes, such as `64m`; each setting defines what a negative number means. */
  def parseBytes(setting: String, text: String): Long =
    try bytesOf(text)
    catch {
      case e: IllegalArgumentException =>
        throw invalid(setting, text, "it is a number of bytes, such as 64m or 1g, or -1", e)
    }

  private def bytesOf(text: String): Long =
    text.trim.toLongOption.getOrElse(JavaUtils.byteStringAsBytes(text))

  /** @param name without the prefix */
  def wholeNumber(spark: SparkSession, name: String, default: Long): Long =
    parsed(spark, name, "it is a whole number")(_.toLongOption.filter(_ >= 0)).getOrElse(default)

  /**
   * The error for an invalid value of a setting.
   *
   * @param setting its full name
   * @param reason which values are valid
   */
  def invalid(
      setting: String,
      value: String,
      reason: String,
      cause: Throwable = null
  ): DeltaicThrowable = DeltaicException(
    "DELTAIC_INVALID_SESSION_SETTING",
    Map("setting" -> setting, "value" -> value, "reason" -> reason),
    cause
  )

  /** Whether a full name has one of the two prefixes. */
  def isOurs(setting: String): Boolean = Prefixes.exists(setting.startsWith)

  def unset(spark: SparkSession, name: String): Unit =
    Prefixes.foreach(prefix => spark.conf.unset(prefix + name))
}
