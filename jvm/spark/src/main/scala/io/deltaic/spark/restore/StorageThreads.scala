package io.deltaic.spark.restore

import java.security.PrivilegedExceptionAction
import java.util.concurrent.{Callable, ExecutionException, Executors, ThreadFactory}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.security.UserGroupInformation

/** Requests to a file system in parallel. They wait more than they compute, so there are more threads than cores. */
private[restore] object StorageThreads {
  private val MaxThreads = 32

  /** The results in order. The requests are made as the user who calls this method; the first failure is thrown. */
  def map[A, B](items: Seq[A])(request: A => B): Seq[B] =
    if (items.size < 2) items.map(request)
    else {
      val pool = Executors.newFixedThreadPool(math.min(MaxThreads, items.size), daemons)
      try {
        val user = UserGroupInformation.getCurrentUser
        val tasks: Seq[Callable[B]] = items.map { item => () =>
          user.doAs((() => request(item)): PrivilegedExceptionAction[B])
        }
        try pool.invokeAll(tasks.asJava).asScala.map(_.get()).toSeq
        catch { case e: ExecutionException => throw e.getCause }
      } finally {
        pool.shutdownNow()
        ()
      }
    }

  private val daemons: ThreadFactory = { task =>
    val thread = new Thread(task, "deltaic-restore")
    thread.setDaemon(true)
    thread
  }
}
