package io.deltaic.spark.rowlevel

import org.apache.spark.sql.classic.SparkSession

import io.deltaic.spark.SessionSettings
import io.deltaic.spark.bridge.RowEnds
import io.deltaic.spark.write.{DataWriteSpec, EndedFiles, WriteTransaction}

/**
 * How rows end on a table with deletion vectors.
 *
 * @param maxDeletedShare a file more of whose rows have ended is rewritten instead of getting a vector
 * @param minDeadBytes unless its ended rows take less than this: reading past them costs less than a rewrite
 * @param maxFileBytes where a file of vectors ends at the latest, unless its first vector alone is larger
 * @param inlineBytes of how many bytes of bitmaps, old and new, the vectors go into the log and not into a file
 * @param mergeBytes of how many bytes of bitmaps the driver makes vectors, and a task where there are more
 */
private[rowlevel] final case class VectorSettings(
    maxDeletedShare: Double,
    minDeadBytes: Long,
    maxFileBytes: Long,
    inlineBytes: Long,
    mergeBytes: Long
) {

  /** Up to how many bytes of bitmaps a task reports, so that so many tasks report no more than can be merged. */
  def reportedBytes(tasks: Int): Long = mergeBytes / tasks.max(1)

  /** @param rows in the file, and `ended` of these now or before */
  def isWorn(sizeBytes: Long, rows: Long, ended: Long): Boolean = {
    val share = ended.toDouble / rows
    share > maxDeletedShare && share * sizeBytes >= minDeadBytes
  }
}

private[rowlevel] object VectorSettings {

  /** What the commit is told of the files whose rows have ended, so that it can share them with others. */
  def rowEnds(transaction: WriteTransaction, files: EndedFiles): RowEnds = {
    val settings = of(transaction)
    RowEnds(
      restEnded = files.newDataFiles.isEmpty,
      DataWriteSpec.randomPrefixLength(transaction.plan.metadata.configuration).getOrElse(0),
      settings.maxFileBytes,
      settings.inlineBytes
    )
  }

  /** A table's own; not of the `delta` namespace, of which other engines know all properties. */
  private val TableProperty = "deltaic.deletionVectors.maxDeletedShare"

  private val MaxDeletedShare = "deletionVectors.maxDeletedShare"
  private val MinDeadBytes = "deletionVectors.minDeadBytes"
  private val MaxFileBytes = "deletionVectors.maxFileBytes"
  private val InlineBytes = "deletionVectors.inlineBytes"
  private val MergeBytes = "deletionVectors.mergeBytes"

  def of(transaction: WriteTransaction): VectorSettings =
    of(transaction.spark, transaction.plan.metadata.configuration)

  private def of(spark: SparkSession, properties: Map[String, String]): VectorSettings =
    VectorSettings(
      maxDeletedShare = properties.get(TableProperty).map(TableProperty -> _)
        .orElse(SessionSettings.get(spark, MaxDeletedShare).map(MaxDeletedShare -> _))
        .fold(0.5) { case (setting, text) => share(setting, text) },
      minDeadBytes = SessionSettings.bytes(spark, MinDeadBytes, 1L << 20),
      maxFileBytes =
        SessionSettings.bytes(spark, MaxFileBytes, 64L << 20).min(Int.MaxValue.toLong),
      inlineBytes = SessionSettings.bytes(spark, InlineBytes, 4L << 10),
      mergeBytes = SessionSettings.bytes(spark, MergeBytes, 32L << 20)
    )

  private def share(setting: String, text: String): Double =
    text.trim.toDoubleOption.filter(share => share >= 0 && share <= 1).getOrElse {
      throw SessionSettings.invalid(setting, text, "it is a share from 0 to 1")
    }
}
