package io.deltaic.spark.util

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.TaskContext
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.JobInternals
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.log.Progress

/**
 * Requests to a file system for many files: by the driver if they are few, else by a job, which Spark shows and can
 * cancel.
 */
private[spark] object FileSystemTasks {

  /** Fewer files take the driver a few seconds at most. */
  private val MinInTasks = 1000L

  /** The minimum number of files of a task: several requests for several files each. */
  private val FilesOfTask = 1000L

  /** A store slows down a client that sends too many requests at the same time. */
  private val MaxTasks = 64
  private val MaxRequests = 128

  /**
   * Applies `f` to some of the items at a time.
   *
   * @param description of the job in the Spark UI, and of the phase in the log
   * @param filesOf the number of files of an item
   * @param f takes the settings of the file system, the items, which end when the task is killed, and the number of threads
   *   for them
   */
  def apply[A, B](
      spark: SparkSession,
      description: String,
      table: Path,
      conf: Configuration,
      items: IndexedSeq[A],
      filesOf: A => Int
  )(f: (Configuration, Iterator[A], Int) => B): Seq[B] = {
    val threads = FileSystemThreads.count(table)
    val numFiles = items.iterator.map(filesOf(_).toLong).sum
    if (numFiles < MinInTasks)
      Progress.of(description, Some(numFiles), "files") { progress =>
        val counted = items.iterator.tapEach(item => progress.add(filesOf(item).toLong))
        Seq(f(conf, counted, threads))
      }
    else {
      // A task with its items could be larger than a message to an executor may be.
      val shared =
        spark.sparkContext.broadcast(Shared(new SerializableConfiguration(conf), items))
      val parts = ranges(items, filesOf)
      val ofTask = threads.min((MaxRequests / parts.size.min(MaxTasks)).max(1))
      try
        JobInternals.inExecutors(spark, description, parts, MaxTasks) { case (from, until) =>
          val task = TaskContext.get()
          val Shared(conf, items) = shared.value
          val open = items.slice(from, until).iterator.takeWhile(_ => !task.isInterrupted())
          Iterator.single(f(conf.value, open, ofTask))
        }
      finally shared.destroy()
    }
  }

  private final case class Shared[A](conf: SerializableConfiguration, items: IndexedSeq[A])

  /** Cuts items into ranges of at least so many files as a task should have. */
  private def ranges[A](items: IndexedSeq[A], filesOf: A => Int): Seq[(Int, Int)] = {
    val found = ArrayBuffer.empty[(Int, Int)]
    var from = 0
    var files = 0L
    items.indices.foreach { i =>
      files += filesOf(items(i)).toLong
      if (files >= FilesOfTask || i == items.size - 1) {
        found += ((from, i + 1))
        from = i + 1
        files = 0L
      }
    }
    found.toSeq
  }
}
