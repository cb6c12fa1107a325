package io.deltaic.spark.write

import java.util.Locale

import org.apache.spark.sql.execution.datasources.DataSourceUtils
import org.apache.spark.sql.internal.SQLConf.PartitionOverwriteMode

import io.deltaic.protocol.DeltaicException

/** The option of an overwrite that says whether it replaces all partitions, or those it has rows for. */
private[spark] object PartitionOverwrite {
  private val Key = DataSourceUtils.PARTITION_OVERWRITE_MODE

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
