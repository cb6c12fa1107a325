package io.deltaic.spark.write

import java.util.Locale

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.DataSourceUtils
import org.apache.spark.sql.internal.SQLConf.PartitionOverwriteMode
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.DeltaicException

/** The partition overwrite mode: static, or dynamic for the partitions that have new rows. */
private[spark] object PartitionOverwrite {
  private val Key = DataSourceUtils.PARTITION_OVERWRITE_MODE

  /** The operation parameter of a write in dynamic mode. */
  val Recorded = "isDynamicPartitionOverwrite"

  /** Whether a write is in dynamic mode: the option takes precedence over the session. */
  def isEffective(spark: SparkSession, options: CaseInsensitiveStringMap): Boolean =
    isDynamic(key => Option(options.get(key))).getOrElse {
      spark.sessionState.conf.partitionOverwriteMode == PartitionOverwriteMode.DYNAMIC
    }

  /** @return none if the option is not set; else whether partitions without new rows are retained */
  def isDynamic(option: String => Option[String]): Option[Boolean] =
    option(Key.toLowerCase(Locale.ROOT)).map { text =>
      val mode = text.trim.toUpperCase(Locale.ROOT)
      if (!PartitionOverwriteMode.values.exists(_.toString == mode))
        throw DeltaicException(
          "DELTAIC_INVALID_WRITE_OPTION",
          Map("option" -> Key, "value" -> text, "valid" -> "static or dynamic")
        )
      mode == PartitionOverwriteMode.DYNAMIC.toString
    }
}
