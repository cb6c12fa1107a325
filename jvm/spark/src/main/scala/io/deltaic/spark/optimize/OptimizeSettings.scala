package io.deltaic.spark.optimize

import org.apache.spark.sql.classic.SparkSession

import io.deltaic.spark.util.SessionSettings

/**
 * Settings of OPTIMIZE.
 *
 * @param minFileBytes smaller files are compacted
 * @param maxFileBytes the size of compacted files
 * @param maxDeletedRowsRatio a file with a larger share of deleted rows is rewritten, even alone
 * @param maxDecodedFileBytes the maximum size of a compacted file before compression
 * @param minTaskBytes a task reads at least this much, if there is enough in its partition
 */
private[optimize] final case class OptimizeSettings(
    minFileBytes: Long,
    maxFileBytes: Long,
    maxDeletedRowsRatio: Double,
    maxDecodedFileBytes: Long,
    minTaskBytes: Long
)

private[optimize] object OptimizeSettings {
  private val MinFileSize = "optimize.minFileSize"
  private val MaxFileSize = "optimize.maxFileSize"
  private val MaxDeletedRowsRatio = "optimize.maxDeletedRowsRatio"
  private val MaxDecodedFileSize = "optimize.maxDecodedFileSize"
  private val MinTaskSize = "optimize.minTaskSize"

  def of(spark: SparkSession): OptimizeSettings = OptimizeSettings(
    size(spark, MinFileSize, 1L << 30),
    size(spark, MaxFileSize, 1L << 30),
    SessionSettings.get(spark, MaxDeletedRowsRatio).fold(0.05)(ratio),
    size(spark, MaxDecodedFileSize, 8L << 30),
    size(spark, MinTaskSize, 32L << 20)
  )

  private def size(spark: SparkSession, name: String, default: Long): Long = {
    val bytes = SessionSettings.bytes(spark, name, default)
    if (bytes > 0) bytes
    else {
      val text = SessionSettings.get(spark, name).getOrElse("")
      throw SessionSettings.invalid(SessionSettings.Prefix + name, text, "it is more than 0 bytes")
    }
  }

  private def ratio(text: String): Double =
    text.trim.toDoubleOption.filter(share => share >= 0 && share <= 1).getOrElse {
      val setting = SessionSettings.Prefix + MaxDeletedRowsRatio
      throw SessionSettings.invalid(setting, text, "it is a share from 0 to 1")
    }
}
