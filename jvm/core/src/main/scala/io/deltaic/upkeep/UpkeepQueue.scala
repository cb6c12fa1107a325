package io.deltaic.upkeep

import java.security.PrivilegedAction
import java.util.concurrent.{ConcurrentHashMap, Executors, Future, FutureTask, TimeUnit}

import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.UserGroupInformation
import org.apache.hadoop.util.ShutdownHookManager
import org.slf4j.LoggerFactory

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

  private val executor = Executors.newSingleThreadExecutor { (task: Runnable) =>
    val thread = new Thread(task, "deltaic-upkeep")
    thread.setDaemon(true)
    thread
  }

  ShutdownHookManager
    .get()
    .addShutdownHook(() => shutdown(), ShutdownPriority, ShutdownSeconds + 5, TimeUnit.SECONDS)

  /** The last task of each table that has any under way. */
  private val newest = new ConcurrentHashMap[String, FutureTask[Unit]]

  /** Runs the task as the user who asks for it. */
  def submit(table: Path)(task: () => Unit): Unit = {
    val user = UserGroupInformation.getCurrentUser
    val action: PrivilegedAction[Unit] = () => task()
    val run: Runnable = () =>
      try user.doAs(action)
      catch { case e: Throwable => logger.error("The upkeep of a table failed", e) }
    val key = table.toString
    val future = new FutureTask[Unit](run, ()) {
      override protected def done(): Unit = {
        newest.remove(key, this)
        ()
      }
    }
    // So that the newest of a table is the one that runs last.
    synchronized {
      newest.put(key, future)
      executor.execute(future)
    }
  }

  /** Waits until all that was submitted so far is done; false if that took longer. */
  def await(timeoutMs: Long): Boolean = await(executor.submit((() => ()): Runnable), timeoutMs)

  /** The same of one table; none that has nothing under way waits for others. */
  def await(table: Path, timeoutMs: Long): Boolean =
    Option(newest.get(table.toString)).forall(await(_, timeoutMs))

  private def await(done: Future[_], timeoutMs: Long): Boolean =
    try {
      done.get(timeoutMs, TimeUnit.MILLISECONDS)
      true
    } catch { case _: java.util.concurrent.TimeoutException => false }

  private def shutdown(): Unit = {
    executor.shutdown()
    if (!executor.awaitTermination(ShutdownSeconds, TimeUnit.SECONDS))
      logger.warn("The upkeep of tables is given up after {} seconds", ShutdownSeconds)
  }
}
