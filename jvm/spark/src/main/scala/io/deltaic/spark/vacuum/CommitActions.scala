package io.deltaic.spark.vacuum

import java.io.FileNotFoundException

import org.apache.spark.sql.deltaic.JobInternals

import io.deltaic.log.{CommitReader, FileNames, LogStore, LogThreads, Progress}
import io.deltaic.protocol.{Action, DeltaicException}
import io.deltaic.replay.DeltaLog

/** Reads the actions of commits one by one: those of a large commit need not be in memory together. */
private[spark] final class CommitActions(log: DeltaLog) {

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

  /**
   * Applies `use` to these results, and logs the progress.
   *
   * @param operation as in the table history
   * @param phase of the operation
   */
  def foreach[A](operation: String, phase: String, first: Long, last: Long)(
      read: Iterator[Action] => A
  )(use: A => Unit): Unit = {
    val name = JobInternals.name(operation, phase, log.table.toString)
    Progress.of(name, Some(math.max(0L, last - first + 1)), "commits") { progress =>
      map(first, last)(read).foreach { result =>
        use(result)
        progress.add(1)
      }
    }
  }

  private def notFound(version: Long): Nothing = throw DeltaicException(
    "DELTAIC_COMMIT_NOT_FOUND",
    Map("table" -> log.table.toString, "version" -> version.toString)
  )
}
