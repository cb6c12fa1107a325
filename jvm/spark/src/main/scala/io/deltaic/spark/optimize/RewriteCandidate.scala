package io.deltaic.spark.optimize

import scala.collection.mutable.ArrayBuffer

import io.deltaic.protocol.AddFile
import io.deltaic.spark.commit.CommitFiles

/**
 * A file that a command may rewrite.
 *
 * @param liveBytes the size of the file without its deleted rows
 * @param isRequired whether it is rewritten even if this leaves as many files
 */
private[optimize] final case class RewriteCandidate(
    file: AddFile,
    liveBytes: Long,
    isRequired: Boolean
)

private[optimize] object RewriteCandidate {

  /** The file as a candidate of a compaction, if it is small or heavily deleted. */
  def ofCompaction(file: AddFile, settings: OptimizeSettings): Option[RewriteCandidate] = {
    val isRequired = isHeavilyDeleted(file, settings)
    Option.when(isRequired || file.sizeBytes < settings.minFileBytes) {
      RewriteCandidate(file, liveBytes(file, deletedShare(file)), isRequired)
    }
  }

  /** Also if the log does not have the number of rows of a file with a deletion vector. */
  def isHeavilyDeleted(file: AddFile, settings: OptimizeSettings): Boolean =
    deletedShare(file).forall(_ > settings.maxDeletedRowsRatio)

  /** The file as one that is to be rewritten. */
  def required(file: AddFile): RewriteCandidate =
    RewriteCandidate(file, liveBytes(file, deletedShare(file)), isRequired = true)

  /** The file as one that is only rewritten if it can share a new file with others. */
  def optional(file: AddFile): RewriteCandidate = required(file).copy(isRequired = false)

  /** None if the log does not have the number of rows of a file with a deletion vector. */
  private def deletedShare(file: AddFile): Option[Double] = file.deletionVector match {
    case None => Some(0.0)
    case Some(vector) =>
      CommitFiles.rows(file).map(rows => vector.cardinality.toDouble / rows.max(1))
  }

  private def liveBytes(file: AddFile, deleted: Option[Double]): Long =
    (file.sizeBytes * (1 - deleted.getOrElse(0.0)).max(0.0)).toLong

  /**
   * The candidates of a partition that are worth it: the required ones, and those with which whole files can
   * share a new file. The smallest files are packed first, so that large ones are only rewritten if that
   * leaves fewer files.
   *
   * @param decodedRatio the size of data before compression, as a multiple of the size of files
   */
  def selected(
      candidates: Seq[RewriteCandidate],
      settings: OptimizeSettings,
      decodedRatio: Double
  ): Seq[RewriteCandidate] = {
    val maxBytes =
      settings.maxFileBytes.min((settings.maxDecodedFileBytes / decodedRatio.max(0.01)).toLong)
    val bins = ArrayBuffer(ArrayBuffer.empty[RewriteCandidate])
    var bytes = 0L
    candidates.sortBy(candidate => (candidate.liveBytes, candidate.file.path)).foreach {
      candidate =>
        bytes += candidate.liveBytes
        if (bytes > maxBytes) {
          bins += ArrayBuffer.empty
          bytes = candidate.liveBytes
        }
        bins.last += candidate
    }
    bins.toSeq.filter(bin => bin.size > 1 || bin.exists(_.isRequired)).flatten
  }
}
