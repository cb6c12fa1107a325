package io.deltaic.spark.write

import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.TableProperties
import io.deltaic.spark.util.SessionSettings

/** Whether the rows of a write are shuffled to write few large files. */
private[spark] object OptimizedWrite {

  /**
   * The first that is set applies: the option of the write, the session's setting, the table's property.
   *
   * @param properties of the table
   * @param option of the write, by its name
   */
  def isEnabled(
      spark: SparkSession,
      properties: Map[String, String],
      option: String => Option[String]
  ): Boolean =
    WriteFlags.of(WriteFlags.OptimizeWrite, option)
      .orElse(SessionSettings.flag(spark, "optimizeWrite.enabled"))
      .getOrElse(TableProperties.isTrue(properties, "delta.autoOptimize.optimizeWrite"))

  /**
   * The bytes of the shuffle for one file. The file is smaller, since rows in a shuffle are not stored by
   * columns.
   */
  def fileSizeBytes(spark: SparkSession): Long =
    SessionSettings.parsed(spark, BinSize, "it is a whole number of megabytes from 1 on") {
      _.toLongOption.filter(_ > 0)
    }.getOrElse(DefaultMegabytes) * 1024 * 1024

  private val BinSize = "optimizeWrite.binSize"
  private val DefaultMegabytes = 512L
}
