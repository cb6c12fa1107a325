package io.deltaic.spark.rowlevel

import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.TableFeatures
import io.deltaic.spark.commit.RebaseSettings
import io.deltaic.spark.commit.reads.RowsByRowId
import io.deltaic.spark.util.SessionSettings
import io.deltaic.spark.write.files.DataWriteSpec
import io.deltaic.spark.write.{RowDeletionActions, WriteTransaction}

/**
 * Settings of deletion vectors.
 *
 * @param maxDeletedShare a file with a larger share of deleted rows is rewritten instead of getting a vector
 * @param minDeadBytes unless its deleted rows take less than this: skipping them costs less than a rewrite
 * @param maxFileBytes the maximum size of a file of vectors, unless its first vector alone is larger
 * @param inlineBytes up to this many bytes of bitmaps, old and new, the vectors are inline in the log; 0: none
 * @param mergeBytes up to this many bytes of bitmaps are merged on the driver or in one task
 */
private[spark] final case class VectorSettings(
    maxDeletedShare: Double,
    minDeadBytes: Long,
    maxFileBytes: Long,
    inlineBytes: Long,
    mergeBytes: Long
) {

  /** The bytes of bitmaps that each of these tasks may report, for the driver to merge all of them. */
  def reportedBytes(tasks: Int): Long = mergeBytes / tasks.max(1)

  /** @param deleted rows of the file, old and new */
  def isHeavilyDeleted(sizeBytes: Long, rows: Long, deleted: Long): Boolean = {
    val share = deleted.toDouble / rows
    share > maxDeletedShare && share * sizeBytes >= minDeadBytes
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
      settings.inlineBytes,
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
  def rebaseSettingsOfMoves(transaction: WriteTransaction): Option[RebaseSettings] =
    Option.when(
      TableFeatures.isActive(
        transaction.plan.protocol,
        transaction.plan.metadata,
        "deletionVectors"
      )
    )(rebaseSettings(transaction, RowDeletionActions.none).copy(movesRows = true))

  /** A table property. It is not in the `delta` namespace, since other engines reject unknown properties there. */
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
      maxDeletedShare = properties.get(TableProperty).map(ofProperty)
        .orElse(SessionSettings.parsed(spark, MaxDeletedShare, IsShare)(share))
        .getOrElse(0.5),
      minDeadBytes = SessionSettings.bytes(spark, MinDeadBytes, 1L << 20),
      maxFileBytes =
        SessionSettings.bytes(spark, MaxFileBytes, 64L << 20).min(Int.MaxValue.toLong),
      inlineBytes = SessionSettings.bytes(spark, InlineBytes, 4L << 10),
      mergeBytes = SessionSettings.bytes(spark, MergeBytes, 32L << 20)
    )

  private val IsShare = "it is a share from 0 to 1"

  private def share(text: String): Option[Double] =
    text.trim.toDoubleOption.filter(share => share >= 0 && share <= 1)

  private def ofProperty(text: String): Double =
    share(text).getOrElse(throw SessionSettings.invalid(TableProperty, text, IsShare))
}
