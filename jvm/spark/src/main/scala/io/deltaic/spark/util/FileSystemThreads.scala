package io.deltaic.spark.util

import java.security.PrivilegedExceptionAction
import java.util.concurrent.atomic.AtomicReference
import java.util.concurrent.{Executors, TimeUnit}

import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.UserGroupInformation

import io.deltaic.log.DaemonThread

/** Threads for requests to a file system, in which they wait more than they compute. */
private[spark] object FileSystemThreads {

  /** A request to an object store takes tens of milliseconds. */
  private val Remote = 32

  /** The number of threads for the files below a directory. */
  def count(directory: Path): Int =
    if (LocalFiles.isLocal(directory)) math.max(2, Runtime.getRuntime.availableProcessors)
    else Remote

  /**
   * Applies `f` to each item, as the user who calls this method. Items are taken when a thread is free. After the first
   * failure no more are taken; it is thrown when all threads have ended.
   */
  def foreach[A](items: Iterator[A], threads: Int)(f: A => Unit): Unit = {
    val failure = new AtomicReference[Throwable]
    def next(): Option[A] = items.synchronized {
      if (failure.get == null && items.hasNext) Some(items.next()) else None
    }
    val user = UserGroupInformation.getCurrentUser
    def work(): Unit =
      try Iterator.continually(next()).takeWhile(_.isDefined).flatten.foreach(f)
      catch { case e: Throwable => failure.compareAndSet(null, e); () }
    val action: PrivilegedExceptionAction[Unit] = () => work()
    val pool = Executors.newFixedThreadPool(
      threads,
      (task: Runnable) => DaemonThread(task, "deltaic-files")
    )
    try {
      (1 to threads).foreach(_ => pool.submit((() => user.doAs(action)): Runnable))
      pool.shutdown()
      while (!pool.awaitTermination(1, TimeUnit.MINUTES)) {}
    } catch {
      case e: InterruptedException =>
        failure.compareAndSet(null, e)
        pool.shutdownNow()
        throw e
    }
    Option(failure.get).foreach(e => throw e)
  }

  /** The results in the order of the items; see [[foreach]]. */
  def map[A, B](items: Seq[A], threads: Int)(f: A => B): Seq[B] =
    if (items.size < 2) items.map(f)
    else {
      val results = new Array[Any](items.size)
      foreach(items.iterator.zipWithIndex, math.min(threads, items.size)) { case (item, i) =>
        results(i) = f(item)
      }
      results.toSeq.asInstanceOf[Seq[B]]
    }
}
