package io.deltaic.spark.write

import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.TableProperties
import io.deltaic.spark.SessionSettings

/** Whether the rows of a write are shuffled to come out in few large files. */
private[spark] object OptimizedWrite {

  /**
   * The first counts that says anything: the write, the session, the table.
   *
   * @param properties of the table
   * @param option of the write, by its name
   */
  def isAskedFor(
      spark: SparkSession,
      properties: Map[String, String],
      option: String => Option[String]
  ): Boolean =
    WriteFlags.of(WriteFlags.OptimizeWrite, option)
      .orElse(SessionSettings.flag(spark, "optimizeWrite.enabled"))
      .orElse(
        TableProperties.set(properties, "delta.autoOptimize.optimizeWrite")
          .map(TableProperties.isTrue)
      )
      .contains(true)

  /**
   * How much of the shuffle goes to a file. A file is smaller than the rows in it are in a shuffle, which
   * are not stored by columns.
   */
  def fileSizeBytes(spark: SparkSession): Long =
    SessionSettings.get(spark, BinSize).fold(DefaultMegabytes) { text =>
      text.trim.toLongOption.filter(_ > 0).getOrElse(
        throw SessionSettings.invalid(
          SessionSettings.Prefix + BinSize,
          text,
          "it is a whole number of megabytes from 1 on"
        )
      )
    } * 1024 * 1024

  private val BinSize = "optimizeWrite.binSize"
  private val DefaultMegabytes = 512L
}
