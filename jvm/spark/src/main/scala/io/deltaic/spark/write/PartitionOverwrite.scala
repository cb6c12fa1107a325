package io.deltaic.spark.write

import java.util.Locale

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.DataSourceUtils
import org.apache.spark.sql.internal.SQLConf.PartitionOverwriteMode
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.DeltaicException

/** The option of an overwrite that says whether it replaces all partitions, or those it has rows for. */
private[spark] object PartitionOverwrite {
  private val Key = DataSourceUtils.PARTITION_OVERWRITE_MODE

  /** What the history says of a write under the mode that replaces single partitions. */
  val Recorded = "isDynamicPartitionOverwrite"

  /** Whether a write replaces the partitions it has rows for: the option beats the session. */
  def isInForce(spark: SparkSession, options: CaseInsensitiveStringMap): Boolean =
    isDynamic(key => Option(options.get(key))).getOrElse {
      spark.sessionState.conf.partitionOverwriteMode == PartitionOverwriteMode.DYNAMIC
    }

  /** @return None where the write does not say; else whether partitions without new rows are kept */
  def isDynamic(option: String => Option[String]): Option[Boolean] =
    option(Key.toLowerCase(Locale.ROOT)).map { text =>
      val mode = text.trim.toUpperCase(Locale.ROOT)
      if (!PartitionOverwriteMode.values.exists(_.toString == mode))
        throw DeltaicException(
          "DELTAIC_INVALID_WRITE_OPTION",
          Map("option" -> Key, "value" -> text)
        )
      mode == PartitionOverwriteMode.DYNAMIC.toString
    }
}
