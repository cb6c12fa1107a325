package io.deltaic.spark.write

import java.util.Locale

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.util.SessionSettings

/** Boolean options of a write. Any other value is an error, as in delta-spark. */
private[spark] object WriteFlags {
  val MergeSchema = "mergeSchema"
  val OverwriteSchema = "overwriteSchema"
  val OptimizeWrite = "optimizeWrite"
  private val all = Seq(MergeSchema, OverwriteSchema, OptimizeWrite, "dataChange")

  def isTrue(option: String, value: String): Boolean =
    SessionSettings.parseFlag(value).getOrElse {
      throw DeltaicException(
        "DELTAIC_INVALID_WRITE_OPTION",
        Map("option" -> option, "value" -> value, "valid" -> "true or false")
      )
    }

  /** Whether an option is true; none if it is not set. It is looked up in lower case. */
  def of(flag: String, option: String => Option[String]): Option[Boolean] =
    option(flag.toLowerCase(Locale.ROOT)).map(isTrue(flag, _))

  /** Refuses invalid values, also of flags that this write does not use. */
  def requireValid(option: String => Option[String]): Unit =
    all.foreach(of(_, option))
}
