package io.deltaic.log

import java.security.PrivilegedAction
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.{ExecutionException, Executors, Future, ThreadFactory}

import scala.collection.mutable
import scala.util.Try

import org.apache.hadoop.security.UserGroupInformation

/** The threads that read log files, shared by all tables; their number bounds the parallel reads of a process. */
private[deltaic] object LogThreads {

  private val threads = math.max(2, math.min(8, Runtime.getRuntime.availableProcessors))

  /** The number of threads. */
  def count: Int = threads

  private val pool = Executors.newFixedThreadPool(
    threads,
    new ThreadFactory {
      private val next = new AtomicInteger
      override def newThread(task: Runnable): Thread =
        DaemonThread(task, s"deltaic-log-${next.incrementAndGet()}")
    }
  )

  /**
   * The results of `read` in the order of `items`. `read` runs as the user who calls this method. It must not call this
   * method itself: it would deadlock.
   *
   * @param readAhead how many items are read ahead of the one in use; it bounds how much of a long log, and how many
   *   large items, are in memory
   */
  def mapInOrder[A, B](items: Iterator[A], readAhead: Int = 2 * threads)(
      read: A => B
  ): Iterator[B] = new Iterator[B] {
    private val ahead = mutable.Queue.empty[Future[B]]
    private val user = UserGroupInformation.getCurrentUser

    private def fill(): Unit =
      while (ahead.size < readAhead && items.hasNext) {
        val item = items.next()
        val action: PrivilegedAction[Try[B]] = () => Try(read(item))
        ahead.enqueue(pool.submit(() => user.doAs(action).get))
      }

    override def hasNext: Boolean = ahead.nonEmpty || items.hasNext

    override def next(): B = {
      fill()
      val first = ahead.dequeue()
      fill()
      try first.get()
      catch {
        case e: ExecutionException =>
          ahead.foreach(_.cancel(false))
          throw e.getCause
      }
    }
  }
}
