package org.apache.spark.sql.deltaic

import java.io.{ByteArrayInputStream, ByteArrayOutputStream}
import java.util.concurrent.{TimeUnit, TimeoutException}

import scala.annotation.tailrec
import scala.reflect.ClassTag

import org.apache.spark.io.CompressionCodec
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SQLExecution
import org.apache.spark.util.CallSite
import org.apache.spark.{SparkContext, SparkEnv, TaskContext}

import io.deltaic.log.Progress

/** Jobs that Deltaic runs outside of a query plan. */
object JobInternals {

  /**
   * Applies `f` to each item in tasks, by default in one of its own, under the session's SQL settings.
   *
   * @param description the job's description in the Spark UI, and in the log while it runs
   * @param maxTasks the maximum number of tasks; with fewer than items, each applies `f` to several
   * @return all results, in the order of the items. They are sent compressed: together they may be
   *   as large as `spark.driver.maxResultSize` allows.
   */
  def inExecutors[A: ClassTag, B](
      spark: SparkSession,
      description: String,
      items: Seq[A],
      maxTasks: Int = Int.MaxValue
  )(f: A => Iterator[B]): Seq[B] =
    if (items.isEmpty) Nil
    else
      ofPartitions(
        spark,
        description,
        spark.sparkContext.parallelize(items, items.size.min(maxTasks))
      )((_, part) => part.flatMap(f))

  /**
   * The same for the partitions of an RDD, under the session's SQL settings.
   *
   * @param f is applied to the number of each partition and its rows
   * @param rows is evaluated with the description
   */
  def ofPartitions[A, B](spark: SparkSession, description: String, rows: => RDD[A])(
      f: (Int, Iterator[A]) => Iterator[B]
  ): Seq[B] =
    described(spark, description) {
      SQLExecution.withSQLConfPropagated(spark) {
        val partitions = rows
        val results = new Array[Array[Byte]](partitions.getNumPartitions)
        Progress.of(description, Some(results.length.toLong), "tasks") { progress =>
          spark.sparkContext.runJob(
            partitions,
            (task: TaskContext, part: Iterator[A]) => packed(f(task.partitionId(), part)),
            results.indices,
            (task: Int, result: Array[Byte]) => {
              results(task) = result
              progress.add(1)
            }
          )
        }
        results.toSeq.flatMap(unpacked[B])
      }
    }

  /** Runs `body` for no statement: its jobs are in a group of their own, and the session is active. */
  def inGroup[A](spark: SparkSession, group: String, description: String)(body: => A): A = {
    spark.sparkContext.setJobGroup(group, description)
    try spark.withActive(body)
    finally spark.sparkContext.clearJobGroup()
  }

  /**
   * Waits until no task of a job group runs. When a job has been cancelled, its tasks may go on for a while, and write
   * files.
   *
   * @return false on timeout
   */
  def awaitTasks(spark: SparkSession, group: String, timeoutMs: Long): Boolean = {
    val deadline = System.nanoTime + TimeUnit.MILLISECONDS.toNanos(timeoutMs)
    val context = spark.sparkContext
    def isRunning: Boolean = {
      val tracker = context.statusTracker
      val stages = tracker.getJobIdsForGroup(group).flatMap(tracker.getJobInfo).flatMap(_.stageIds)
      stages.flatMap(tracker.getStageInfo).exists(_.numActiveTasks > 0)
    }
    @tailrec
    def hasEnded: Boolean =
      if (context.isStopped || !isRunning) true
      else if (System.nanoTime >= deadline) false
      else {
        Thread.sleep(20)
        hasEnded
      }
    // The tracker knows of tasks by events.
    try context.listenerBus.waitUntilEmpty(timeoutMs)
    catch { case _: TimeoutException => () }
    hasEnded
  }

  /** A job description: the operation as in the table history, a phase of it, and the table's path. */
  def name(operation: String, phase: String, table: String): String =
    s"$operation: $phase, $table"

  /** Runs `body` with a description of its jobs in the Spark UI. */
  def described[A](spark: SparkSession, description: String)(body: => A): A = {
    val end = describe(spark, description)
    try calledAs(spark, s"deltaic $description")(body)
    finally end()
  }

  /**
   * Runs `body` with a call site for the Spark UI, unless the user has set one. Spark would take it
   * from the stack, as the innermost line that is not its own, which is one of Deltaic's.
   */
  def calledAs[A](spark: SparkSession, call: String)(body: => A): A = {
    val context = spark.sparkContext
    if (context.getLocalProperty(CallSite.SHORT_FORM) != null) body
    else {
      context.setLocalProperty(CallSite.SHORT_FORM, call)
      try body
      finally context.setLocalProperty(CallSite.SHORT_FORM, null)
    }
  }

  /**
   * As [[described]], for jobs that this thread runs from now on.
   *
   * @return a function that restores the previous description. A user's description is kept as a
   *   prefix, an outer description of Deltaic's is replaced.
   */
  def describe(spark: SparkSession, description: String): () => Unit = {
    val context = spark.sparkContext
    val names = Seq(SparkContext.SPARK_JOB_DESCRIPTION, OwnDescription, DescriptionOfUser)
    val before = names.map(name => name -> context.getLocalProperty(name)).toMap
    val now = before(SparkContext.SPARK_JOB_DESCRIPTION)
    val isOurs = now != null && now == before(OwnDescription)
    val ofUser = Option(if (isOurs) before(DescriptionOfUser) else now).filter(_.nonEmpty)
    val full = (ofUser.toSeq :+ s"deltaic $description").mkString(": ")
    names.zip(Seq(full, full, ofUser.orNull)).foreach { case (name, text) =>
      context.setLocalProperty(name, text)
    }
    () => before.foreach { case (name, text) => context.setLocalProperty(name, text) }
  }

  /** Deltaic's last description, and the user's description before it. */
  private val OwnDescription = "io.deltaic.job.description"
  private val DescriptionOfUser = "io.deltaic.job.description.ofUser"

  private def packed(results: Iterator[_]): Array[Byte] = {
    val bytes = new ByteArrayOutputStream
    val stream = serializer.serializeStream(codec.compressedOutputStream(bytes))
    try results.foreach(result => stream.writeObject(result))
    finally stream.close()
    bytes.toByteArray
  }

  private def unpacked[B](bytes: Array[Byte]): Iterator[B] = {
    val compressed = codec.compressedInputStream(new ByteArrayInputStream(bytes))
    serializer.deserializeStream(compressed).asIterator.asInstanceOf[Iterator[B]]
  }

  private def serializer = SparkEnv.get.closureSerializer.newInstance()

  private def codec = CompressionCodec.createCodec(SparkEnv.get.conf, "zstd")
}
