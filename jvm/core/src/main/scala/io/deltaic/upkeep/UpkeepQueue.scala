package io.deltaic.upkeep

import java.security.PrivilegedAction
import java.util.concurrent.{
  CancellationException,
  Future,
  FutureTask,
  LinkedBlockingQueue,
  ThreadPoolExecutor,
  TimeUnit,
  TimeoutException
}

import scala.collection.mutable

import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.UserGroupInformation
import org.apache.hadoop.util.ShutdownHookManager
import org.slf4j.LoggerFactory

import io.deltaic.log.DaemonThread

/**
 * The one thread of this process that looks after logs, so that who commits need not wait (docs/decisions/0013). Tasks
 * run in the order of their commits. A process that ends in the normal way waits for them; one that is killed leaves
 * nothing half written, for every file appears complete or not at all.
 */
object UpkeepQueue {

  private val logger = LoggerFactory.getLogger(getClass)

  /** Above those of Spark and Hadoop, which take the file systems away. */
  private val ShutdownPriority = 100
  private val ShutdownSeconds = 60L

  private val executor = new ThreadPoolExecutor(
    1,
    1,
    0,
    TimeUnit.SECONDS,
    new LinkedBlockingQueue[Runnable],
    (task: Runnable) => DaemonThread(task, "deltaic-upkeep")
  )

  ShutdownHookManager
    .get()
    .addShutdownHook(() => shutdown(), ShutdownPriority, ShutdownSeconds + 5, TimeUnit.SECONDS)

  /** What is not done yet, by table. */
  private val unfinished = mutable.Map.empty[String, Set[FutureTask[Unit]]]

  /** Runs the task as the user who asks for it. */
  def submit(table: Path)(task: () => Unit): Unit = {
    val user = UserGroupInformation.getCurrentUser
    val action: PrivilegedAction[Unit] = () => task()
    val run: Runnable = () =>
      try user.doAs(action)
      catch { case e: Throwable => logger.error("The upkeep of a table failed", e) }
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

  /** Waits until all that was submitted so far is done; false if that took longer. */
  def await(timeoutMs: Long): Boolean = await(executor.submit((() => ()): Runnable), timeoutMs)

  /** Gives up what has not begun of one table, and waits for what has; false if that takes longer. */
  def giveUp(table: Path, timeoutMs: Long): Boolean = {
    val (dropped, begun) =
      synchronized(unfinished.getOrElse(table.toString, Set.empty)).partition(executor.remove(_))
    dropped.foreach(_.cancel(false))
    begun.forall(await(_, timeoutMs))
  }

  private def await(done: Future[_], timeoutMs: Long): Boolean =
    try {
      done.get(timeoutMs, TimeUnit.MILLISECONDS)
      true
    } catch {
      case _: TimeoutException => false
      // By somebody else, who drops the table, too.
      case _: CancellationException => true
    }

  private def shutdown(): Unit = {
    executor.shutdown()
    if (!executor.awaitTermination(ShutdownSeconds, TimeUnit.SECONDS))
      logger.warn("The upkeep of tables is given up after {} seconds", ShutdownSeconds)
  }
}
