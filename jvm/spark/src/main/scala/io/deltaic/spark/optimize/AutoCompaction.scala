package io.deltaic.spark.optimize

import java.security.PrivilegedAction
import java.util.concurrent.{Future, FutureTask, TimeUnit}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.UserGroupInformation
import org.apache.hadoop.util.ShutdownHookManager
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.slf4j.LoggerFactory

import io.deltaic.log.DaemonThread
import io.deltaic.protocol.{AddFile, DeltaicThrowable}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.errors.DeltaicConcurrentModificationException
import io.deltaic.spark.util.Cancellation

/**
 * Compacts small files after commits, on a thread of its own, so that commits need not wait
 * (docs/decisions/0049). A table is compacted once for all commits that come before its turn.
 *
 * Nothing here fails a statement: a compaction that loses to other commits, or whose Spark context is stopped, is given
 * up. It is due again with the next commit to the same partitions.
 */
private[spark] object AutoCompaction {

  private val logger = LoggerFactory.getLogger(getClass)

  /** As that of log maintenance: higher than those of Spark and Hadoop. */
  private val ShutdownPriority = 100
  private val ShutdownSeconds = 10L
  private val IdleSeconds = 30L

  private val executor = {
    val queue = DaemonThread.queue("deltaic-auto-compaction")
    queue.setKeepAliveTime(IdleSeconds, TimeUnit.SECONDS)
    queue.allowCoreThreadTimeOut(true)
    queue
  }

  /**
   * A table that is to be compacted, or is being compacted.
   *
   * @param addedTo a new file of each partition that commits have added files to
   */
  private final class Turn(
      val spark: SparkSession,
      val log: DeltaLog,
      var addedTo: Seq[AddFile],
      var limits: AutoCompactLimits
  ) {
    var isCancelled = false
    lazy val jobGroup: String = s"deltaic-auto-compaction-${System.identityHashCode(this)}"
  }

  private val waiting = mutable.Map.empty[String, (Turn, FutureTask[Unit])]
  private var running: Option[(String, Turn, FutureTask[Unit])] = None
  private val reported = mutable.Set.empty[(String, String)]

  ShutdownHookManager
    .get()
    .addShutdownHook(() => shutdown(), ShutdownPriority, ShutdownSeconds + 5, TimeUnit.SECONDS)

  /**
   * Compacts the partitions of the files that a commit has added, when it is the table's turn.
   *
   * @param added at least one file of each of these partitions
   */
  def submit(spark: SparkSession, log: DeltaLog, added: Seq[AddFile]): Future[Unit] = {
    val key = log.table.toString
    val limits = AutoCompactLimits.of(spark)
    val partitions = added.distinctBy(_.partitionValues)
    synchronized {
      waiting.get(key) match {
        case Some((turn, future)) =>
          turn.limits = limits
          turn.addedTo = (turn.addedTo ++ partitions).distinctBy(_.partitionValues)
          future
        case None =>
          val turn = new Turn(spark, log, partitions, limits)
          val user = UserGroupInformation.getCurrentUser
          lazy val future: FutureTask[Unit] = new FutureTask[Unit](
            () => {
              val action: PrivilegedAction[Unit] = () => take(key, turn, future)
              user.doAs(action)
            },
            ()
          )
          waiting(key) = (turn, future)
          executor.execute(future)
          future
      }
    }
  }

  /** Waits until all compactions submitted so far have ended; false on timeout. */
  def await(timeoutMs: Long): Boolean =
    DaemonThread.await(executor.submit((() => ()): Runnable), timeoutMs)

  /** Cancels the compaction of a table, and waits for it and its tasks to end; false on timeout. */
  def cancel(table: Path, timeoutMs: Long): Boolean = {
    val key = table.toString
    val current = synchronized {
      waiting.remove(key).foreach { case (_, future) => future.cancel(false) }
      running.filter(_._1 == key).map { case (_, turn, future) =>
        turn.isCancelled = true
        (turn, future)
      }
    }
    current.forall { case (turn, future) =>
      cancelJobs(turn)
      DaemonThread.await(future, timeoutMs) &&
      JobInternals.awaitTasks(turn.spark, turn.jobGroup, timeoutMs)
    }
  }

  private def take(key: String, turn: Turn, future: FutureTask[Unit]): Unit = {
    synchronized {
      waiting.remove(key)
      running = Some((key, turn, future))
    }
    try run(turn)
    finally synchronized { running = None }
  }

  private def run(turn: Turn): Unit = {
    val context = turn.spark.sparkContext
    def isCancelled: Boolean = context.isStopped || synchronized(turn.isCancelled)
    val hasEnded =
      try {
        val isDue = !isCancelled
        if (isDue) compact(turn)
        isDue
      } catch {
        case _: Throwable if isCancelled => false
        case e: DeltaicConcurrentModificationException =>
          logger.info(
            "Table {}: auto compaction gives way to another commit: {}",
            turn.log.table,
            e.getMessage
          )
          true
        case e: DeltaicThrowable if e.condition == Cancellation.Condition =>
          logger.info(
            "Table {}: auto compaction is cancelled; a later commit retries it",
            turn.log.table
          )
          true
        case NonFatal(e) =>
          logger.warn(
            s"Table ${turn.log.table}: auto compaction failed; a later commit retries it",
            e
          )
          true
      }
    if (!hasEnded)
      logger.warn(
        "Table {}: auto compaction is cancelled, since the Spark context is stopped or the table is dropped. A later " +
          "commit retries it. A process that ends right after its commit can compact before the commit returns, with " +
          "spark.deltaic.maintenance.background = false",
        turn.log.table
      )
  }

  private def compact(turn: Turn): Unit = {
    val table = turn.log.table
    val snapshot = turn.log.latest()
    impossible(snapshot) match {
      case Some(reason) =>
        if (synchronized(reported.add(table.toString -> reason)))
          logger.warn("Table {}: auto compaction is not possible: {}", table, reason)
      case None =>
        // Settings that a commit changes, such as the last version of the session, are not those of the user's.
        val session = SessionInternals.cloned(turn.spark)
        JobInternals.inGroup(session, turn.jobGroup, "auto compaction") {
          val request = synchronized(AutoCompactRequest(turn.addedTo, turn.limits))
          if (request.considered(session, snapshot).exists(_.nonEmpty)) {
            val metrics = new TableRewrite(session, turn.log, request).run()
            logger.info(
              "Table {}: auto compaction has replaced {} files by {}",
              table,
              metrics.get("numFilesRemoved"),
              metrics.get("numFilesAdded")
            )
          }
        }
    }
  }

  private def impossible(snapshot: Snapshot): Option[String] =
    Option.when(snapshot.isDistributed)(
      "its checkpoint is too large to be loaded after each commit. Run OPTIMIZE, or increase " +
        "spark.deltaic.snapshot.distributedThresholdBytes"
    )

  private def cancelJobs(turn: Turn): Unit =
    try turn.spark.sparkContext.cancelJobGroup(turn.jobGroup)
    catch { case NonFatal(_) => () } // The context has been stopped meanwhile.

  /** Cancels what runs: its commit needs Python, which ends with the process. */
  private def shutdown(): Unit = {
    val current = synchronized {
      executor.getQueue.clear()
      executor.shutdown()
      waiting.clear()
      running.map { case (_, turn, _) =>
        turn.isCancelled = true
        turn
      }
    }
    current.foreach(cancelJobs)
    executor.awaitTermination(ShutdownSeconds, TimeUnit.SECONDS)
    ()
  }
}
