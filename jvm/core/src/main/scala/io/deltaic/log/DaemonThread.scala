package io.deltaic.log

import java.util.concurrent.{
  CancellationException,
  Future,
  LinkedBlockingQueue,
  ThreadPoolExecutor,
  TimeUnit,
  TimeoutException
}

/**
 * A thread that serves all sessions, for the lifetime of the JVM. It inherits nothing from the thread that creates it:
 * Spark passes its session on to new threads, and that session could never be garbage collected.
 */
private[deltaic] object DaemonThread {

  def apply(task: Runnable, name: String): Thread = {
    val thread = new Thread(null, task, name, 0L, /* inheritThreadLocals = */ false)
    thread.setContextClassLoader(getClass.getClassLoader)
    thread.setDaemon(true)
    thread
  }

  /** A queue of tasks with one such thread. */
  def queue(name: String): ThreadPoolExecutor = new ThreadPoolExecutor(
    1,
    1,
    0,
    TimeUnit.SECONDS,
    new LinkedBlockingQueue[Runnable],
    (task: Runnable) => DaemonThread(task, name)
  )

  /** Waits for a task, which another thread may cancel; false on timeout. */
  def await(task: Future[_], timeoutMs: Long): Boolean =
    try {
      task.get(timeoutMs, TimeUnit.MILLISECONDS)
      true
    } catch {
      case _: TimeoutException => false
      case _: CancellationException => true
    }
}
