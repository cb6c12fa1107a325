package io.deltaic.spark.vacuum

import java.io.FileNotFoundException

import io.deltaic.log.{CommitReader, FileNames, LogStore, LogThreads}
import io.deltaic.protocol.{Action, DeltaicException}
import io.deltaic.replay.DeltaLog

/** Reads the actions of commits one by one: those of a large commit need not be in memory together. */
private[vacuum] final class CommitActions(log: DeltaLog) {

  private val reader =
    new CommitReader(log.table, LogStore.forPath(FileNames.logDirectory(log.table), log.conf))

  /**
   * The results of `read` for the actions of each of these commits, both ends inclusive, in order. It runs in several
   * threads. A version whose commit is not in the log is an error when it is reached.
   */
  def map[A](first: Long, last: Long)(read: Iterator[Action] => A): Iterator[A] =
    LogThreads.mapInOrder((first to last).iterator) { version =>
      val file = log.commitFile(version).getOrElse(notFound(version))
      try reader.readEach(version, file)(read)
      catch { case _: FileNotFoundException => notFound(version) }
    }

  private def notFound(version: Long): Nothing = throw DeltaicException(
    "DELTAIC_COMMIT_NOT_FOUND",
    Map("table" -> log.table.toString, "version" -> version.toString)
  )
}
