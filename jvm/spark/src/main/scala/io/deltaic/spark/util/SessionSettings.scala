package io.deltaic.spark.util

import java.util.Locale

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
    Prefixes.iterator.flatMap(prefix => spark.conf.getOption(prefix + name)).nextOption()

  /** @param name without the prefix */
  def isOn(spark: SparkSession, name: String, default: Boolean = false): Boolean =
    flag(spark, name).getOrElse(default)

  /**
   * Whether a setting is on; None if it is not set.
   *
   * @param name without the prefix
   */
  def flag(spark: SparkSession, name: String): Option[Boolean] = get(spark, name).map { text =>
    parseFlag(text).getOrElse(throw invalid(Prefix + name, text, "it is true or false"))
  }

  def parseFlag(text: String): Option[Boolean] = text.trim.toLowerCase(Locale.ROOT).toBooleanOption

  /** @param name without the prefix */
  def bytes(spark: SparkSession, name: String, default: Long): Long =
    get(spark, name).fold(default)(parseBytes(Prefix + name, _))

  /** A number of bytes, such as `64m`; each setting defines what a negative number means. */
  def parseBytes(setting: String, text: String): Long =
    try text.trim.toLongOption.getOrElse(JavaUtils.byteStringAsBytes(text))
    catch {
      case e: IllegalArgumentException =>
        throw invalid(setting, text, "it is a number of bytes, such as 64m or 1g, or -1", e)
    }

  /** @param name without the prefix */
  def wholeNumber(spark: SparkSession, name: String, default: Long): Long =
    get(spark, name).fold(default) { text =>
      text.trim.toLongOption.filter(_ >= 0).getOrElse {
        throw invalid(Prefix + name, text, "it is a whole number")
      }
    }

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
