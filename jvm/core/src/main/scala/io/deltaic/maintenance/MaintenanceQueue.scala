package io.deltaic.maintenance

import java.security.PrivilegedAction
import java.util.concurrent.{FutureTask, TimeUnit}

import scala.collection.mutable

import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.UserGroupInformation
import org.apache.hadoop.util.ShutdownHookManager
import org.slf4j.LoggerFactory

import io.deltaic.log.DaemonThread

/**
 * The single thread of this process that runs maintenance, so that commits need not wait (docs/decisions/0013). Tasks
 * run in the order of their commits. A normal process exit waits for them; a killed process leaves no partial file,
 * because every file appears complete or not at all.
 */
object MaintenanceQueue {

  private val logger = LoggerFactory.getLogger(getClass)

  /** Higher than those of Spark and Hadoop, which close the file systems. */
  private val ShutdownPriority = 100
  private val ShutdownSeconds = 60L

  private val executor = DaemonThread.queue("deltaic-maintenance")

  ShutdownHookManager
    .get()
    .addShutdownHook(() => shutdown(), ShutdownPriority, ShutdownSeconds + 5, TimeUnit.SECONDS)

  /** The unfinished tasks, by table. */
  private val unfinished = mutable.Map.empty[String, Set[FutureTask[Unit]]]

  /** Runs the task as the user who submits it. */
  def submit(table: Path)(task: () => Unit): Unit = {
    val user = UserGroupInformation.getCurrentUser
    val action: PrivilegedAction[Unit] = () => task()
    val run: Runnable = () =>
      try user.doAs(action)
      catch { case e: Throwable => logger.error("The maintenance of a table failed", e) }
    val key = table.toString
    val future = new FutureTask[Unit](run, ()) {
      override protected def done(): Unit = finished(key, this)
    }
    synchronized {
      unfinished(key) = unfinished.getOrElse(key, Set.empty) + future
      executor.execute(future)
    }
  }

  private def finished(key: String, future: FutureTask[Unit]): Unit = synchronized {
    unfinished.updateWith(key)(_.map(_ - future).filter(_.nonEmpty))
    ()
  }

  /** Waits for all tasks submitted so far; false on timeout. */
  def await(timeoutMs: Long): Boolean =
    DaemonThread.await(executor.submit((() => ()): Runnable), timeoutMs)

  /** Cancels the tasks of a table that have not started, and waits for the running one; false on timeout. */
  def cancel(table: Path, timeoutMs: Long): Boolean = {
    val (dropped, started) =
      synchronized(unfinished.getOrElse(table.toString, Set.empty)).partition(executor.remove(_))
    dropped.foreach(_.cancel(false))
    started.forall(DaemonThread.await(_, timeoutMs))
  }

  private def shutdown(): Unit = {
    executor.shutdown()
    if (!executor.awaitTermination(ShutdownSeconds, TimeUnit.SECONDS))
      logger.warn("The maintenance of tables is given up after {} seconds", ShutdownSeconds)
  }
}
