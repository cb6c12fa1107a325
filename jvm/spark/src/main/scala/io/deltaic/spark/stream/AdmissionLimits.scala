package io.deltaic.spark.stream

import org.apache.spark.sql.connector.read.streaming._

/** Limits the files of one batch by their number and bytes, but admits at least one item of the stream. */
private[stream] final class AdmissionLimits(maxFiles: Long, maxBytes: Long) {

  private var files = maxFiles
  private var bytes = maxBytes

  /** Whether the next files are admitted; no files are, as long as the limits are not reached. */
  def admits(numFiles: Int, sizeBytes: Long): Boolean = {
    val fits = files > 0 && bytes > 0
    files -= numFiles
    bytes -= sizeBytes
    fits
  }
}

private[stream] object AdmissionLimits {

  def of(limit: ReadLimit): AdmissionLimits = {
    val all = limit match {
      case several: CompositeReadLimit => several.getReadLimits.toSeq
      case one => Seq(one)
    }
    val files = all.collect { case few: ReadMaxFiles => few.maxFiles.toLong }
    val bytes = all.collect { case small: ReadMaxBytes => small.maxBytes }
    new AdmissionLimits(
      files.minOption.getOrElse(Long.MaxValue),
      bytes.minOption.getOrElse(Long.MaxValue)
    )
  }
}
