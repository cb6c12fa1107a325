package io.deltaic.spark.stream

import org.apache.spark.sql.connector.read.streaming._

/** What fits into one batch: files until there are enough of them, or bytes, but at least one. */
private[stream] final class Room(maxFiles: Long, maxBytes: Long) {

  private var files = maxFiles
  private var bytes = maxBytes

  /** @param sizeBytes none for a place without a file, which takes no room */
  def admits(sizeBytes: Option[Long]): Boolean = {
    val fits = files > 0 && bytes > 0
    sizeBytes.foreach { size =>
      files -= 1
      bytes -= size
    }
    fits
  }
}

private[stream] object Room {

  def of(limit: ReadLimit): Room = {
    val all = limit match {
      case several: CompositeReadLimit => several.getReadLimits.toSeq
      case one => Seq(one)
    }
    val files = all.collect { case few: ReadMaxFiles => few.maxFiles.toLong }
    val bytes = all.collect { case small: ReadMaxBytes => small.maxBytes }
    new Room(files.minOption.getOrElse(Long.MaxValue), bytes.minOption.getOrElse(Long.MaxValue))
  }
}
