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
 * @param maxWriteAmplification an incremental clustering writes at most so many times the bytes that are new, and the
 *   files of which many rows are deleted
 * @param minCubeBytes an incremental clustering merges no cube that has at least so many bytes of live rows
 * @param targetCubeBytes what a clustering rewrites becomes cubes of about this size, or one cube if there is none
 * @param checksStatistics whether ZORDER BY refuses columns without statistics
 * @param maxTasks how many tasks write files at a time
 * @param batchBytes files of at least this size are committed together, before more are rewritten; if
 *   none, all are
 */
private[optimize] final case class OptimizeSettings(
    minFileBytes: Long,
    maxFileBytes: Long,
    maxDeletedRowsRatio: Double,
    maxDecodedFileBytes: Long,
    minTaskBytes: Long,
    maxWriteAmplification: Double,
    checksStatistics: Boolean,
    minCubeBytes: Option[Long] = None,
    targetCubeBytes: Option[Long] = None,
    maxTasks: Int = Int.MaxValue,
    batchBytes: Option[Long] = None
)

private[optimize] object OptimizeSettings {
  private val MinFileSize = "optimize.minFileSize"
  private val MaxFileSize = "optimize.maxFileSize"
  private val MaxDeletedRowsRatio = "optimize.maxDeletedRowsRatio"
  private val MaxDecodedFileSize = "optimize.maxDecodedFileSize"
  private val MinTaskSize = "optimize.minTaskSize"
  private val MaxWriteAmplification = "optimize.clustering.maxWriteAmplification"
  private val MinCubeSize = "optimize.clustering.mergeStrategy.minCubeSize.threshold"
  private val TargetCubeSize = "optimize.clustering.mergeStrategy.minCubeSize.targetCubeSize"
  private val ChecksStatistics = "optimize.zorder.checkStatsCollection.enabled"
  private val MaxThreads = "optimize.maxThreads"
  private val BatchSize = "optimize.batchSize"

  def of(spark: SparkSession): OptimizeSettings = {
    val minCubeBytes = SessionSettings.bytesFromZero(spark, MinCubeSize)
    OptimizeSettings(
      SessionSettings.positiveBytes(spark, MinFileSize).getOrElse(1L << 30),
      SessionSettings.positiveBytes(spark, MaxFileSize).getOrElse(1L << 30),
      number(spark, MaxDeletedRowsRatio, 0.05, "it is a share from 0 to 1")(n => n >= 0 && n <= 1),
      SessionSettings.positiveBytes(spark, MaxDecodedFileSize).getOrElse(8L << 30),
      SessionSettings.positiveBytes(spark, MinTaskSize).getOrElse(32L << 20),
      number(spark, MaxWriteAmplification, 4.0, "it is a number from 1")(_ >= 1),
      SessionSettings.isOn(spark, ChecksStatistics, default = true),
      minCubeBytes,
      SessionSettings.bytesFromZero(spark, TargetCubeSize)
        .map(_.max(minCubeBytes.getOrElse(0L)).max(1L)),
      SessionSettings.parsed(spark, MaxThreads, "it is a whole number from 1 on") {
        _.toIntOption.filter(_ > 0)
      }.getOrElse(Int.MaxValue),
      SessionSettings.positiveBytes(spark, BatchSize)
    )
  }

  private def number(spark: SparkSession, name: String, default: Double, rule: String)(
      isValid: Double => Boolean
  ): Double =
    SessionSettings.parsed(spark, name, rule)(_.toDoubleOption.filter(isValid)).getOrElse(default)
}
