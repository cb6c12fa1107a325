package io.deltaic.spark.rowlevel

import io.deltaic.protocol.{DeltaicException, TableFeatures}
import io.deltaic.spark.commit.RebaseSettings
import io.deltaic.spark.commit.reads.RowsByRowId
import io.deltaic.spark.util.SessionSettings
import io.deltaic.spark.write.files.DataWriteSpec
import io.deltaic.spark.write.{RowDeletionActions, WriteTransaction}

/**
 * Settings of deletion vectors.
 *
 * @param maxDeletedRowsRatio a file with a larger share of deleted rows is rewritten instead of getting a vector
 * @param minDeletedBytes unless its deleted rows take less than this: skipping them costs less than a rewrite
 * @param maxFileBytes the maximum size of a file of vectors, unless its first vector alone is larger
 * @param maxInlineBytes up to this many bytes of bitmaps, old and new, the vectors are inline in the log; 0: none
 * @param maxBitmapMergeBytes up to this many bytes of bitmaps are merged on the driver or in one task
 */
private[spark] final case class VectorSettings(
    maxDeletedRowsRatio: Double,
    minDeletedBytes: Long,
    maxFileBytes: Long,
    maxInlineBytes: Long,
    maxBitmapMergeBytes: Long
) {

  /** The bytes of bitmaps that each of these tasks may report, for the driver to merge all of them. */
  def reportedBytes(tasks: Int): Long = maxBitmapMergeBytes / tasks.max(1)

  /** @param deleted rows of the file, old and new */
  def isHeavilyDeleted(sizeBytes: Long, rows: Long, deleted: Long): Boolean = {
    val share = deleted.toDouble / rows
    share > maxDeletedRowsRatio && share * sizeBytes >= minDeletedBytes
  }
}

private[spark] object VectorSettings {

  /** How the commit can rebase the deletions onto files that other commits change, too. */
  def rebaseSettings(transaction: WriteTransaction, files: RowDeletionActions): RebaseSettings = {
    val settings = of(transaction)
    RebaseSettings(
      restDeleted = files.newDataFiles.isEmpty,
      DataWriteSpec.randomPrefixLength(transaction.plan.metadata.configuration).getOrElse(0),
      settings.maxFileBytes,
      settings.maxInlineBytes,
      lookup = transaction.schema.rowTracking.filter(_.materialized.nonEmpty).map { _ =>
        new RowsByRowId(
          transaction.spark,
          transaction.log.table,
          transaction.readVersion,
          transaction.schema,
          transaction.jobs
        )
      }
    )
  }

  /** The same for a commit that moves the rows of the files that it removes; none without deletion vectors. */
  def rebaseSettingsOfRelocation(transaction: WriteTransaction): Option[RebaseSettings] =
    Option.when(
      TableFeatures.isActive(
        transaction.plan.protocol,
        transaction.plan.metadata,
        "deletionVectors"
      )
    )(rebaseSettings(transaction, RowDeletionActions.none).copy(relocatesRows = true))

  /** A table property. It is not in the `delta` namespace, since other engines reject unknown properties there. */
  private val TableProperty = "deltaic.deletionVectors.maxDeletedRowsRatio"

  private val MaxDeletedRowsRatio = "deletionVectors.maxDeletedRowsRatio"
  private val MinDeletedBytes = "deletionVectors.minDeletedBytes"
  private val MaxFileBytes = "deletionVectors.maxFileBytes"
  private val MaxInlineBytes = "deletionVectors.maxInlineBytes"
  private val MaxBitmapMergeBytes = "deletionVectors.maxBitmapMergeBytes"

  def of(transaction: WriteTransaction): VectorSettings = {
    val spark = transaction.spark
    VectorSettings(
      maxDeletedRowsRatio = ofTable(transaction)
        .orElse(SessionSettings.parsed(spark, MaxDeletedRowsRatio, IsRatio)(ratio))
        .getOrElse(0.5),
      minDeletedBytes = SessionSettings.bytes(spark, MinDeletedBytes, 1L << 20),
      maxFileBytes =
        SessionSettings.bytes(spark, MaxFileBytes, 64L << 20).min(Int.MaxValue.toLong),
      maxInlineBytes = SessionSettings.bytes(spark, MaxInlineBytes, 4L << 10),
      maxBitmapMergeBytes = SessionSettings.bytes(spark, MaxBitmapMergeBytes, 32L << 20)
    )
  }

  private val IsRatio = "it is a number from 0 to 1"

  private def ratio(text: String): Option[Double] =
    text.trim.toDoubleOption.filter(ratio => ratio >= 0 && ratio <= 1)

  /** Another writer may have stored the property without checking it. */
  private def ofTable(transaction: WriteTransaction): Option[Double] =
    transaction.plan.metadata.configuration.get(TableProperty).map { value =>
      ratio(value).getOrElse(throw DeltaicException(
        "DELTAIC_INVALID_STORED_PROPERTY",
        Map(
          "table" -> transaction.log.table.toString,
          "property" -> TableProperty,
          "value" -> value,
          "reason" -> IsRatio
        )
      ))
    }
}
