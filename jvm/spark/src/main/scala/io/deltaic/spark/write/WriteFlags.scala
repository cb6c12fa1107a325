package io.deltaic.spark.write

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.SessionSettings

/** Options of a write that are true or false. One that is neither is an error, as in delta-spark. */
private[spark] object WriteFlags {
  val MergeSchema = "mergeSchema"
  val OverwriteSchema = "overwriteSchema"
  val OptimizeWrite = "optimizeWrite"
  private val all = Seq(MergeSchema, OverwriteSchema, OptimizeWrite, "dataChange")

  def isTrue(option: String, value: String): Boolean =
    SessionSettings.parseFlag(value).getOrElse {
      throw DeltaicException(
        "DELTAIC_INVALID_WRITE_OPTION",
        Map("option" -> option, "value" -> value)
      )
    }

  /** Refuses values that no flag can have, of those too that this write does not ask about. */
  def requireValid(option: String => Option[String]): Unit =
    for (flag <- all; value <- option(flag)) isTrue(flag, value)
}
