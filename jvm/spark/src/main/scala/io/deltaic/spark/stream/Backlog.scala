package io.deltaic.spark.stream

import io.deltaic.protocol.DeltaicThrowable

/**
 * What a stream has not read yet, for its progress report.
 *
 * @param content counts the items
 */
private[stream] final class Backlog[A](items: StreamedItems[A], content: StreamContent[A]) {

  /**
   * The metrics of a stream that has read up to an offset. Files are not counted if there are too many of them to be read
   * ahead, or if the stream cannot read a commit, which then fails its batch.
   *
   * @param latest the latest version of the table
   */
  def metrics(offset: StreamOffset, latest: Long): Map[String, String] = {
    val (rest, next) = items.restOf(offset)
    val ahead =
      try items.readAhead(next, latest)
      catch { case _: DeltaicThrowable => None }
    val commits = Map("numCommitsOutstanding" -> (latest - next + 1).max(0L).toString)
    commits ++ ahead.fold(Map.empty[String, String]) { later =>
      val all = rest ++ later
      Map(
        "numFilesOutstanding" -> all.map(content.numFiles(_).toLong).sum.toString,
        "numBytesOutstanding" -> all.map(content.sizeBytes).sum.toString
      )
    }
  }
}
