package io.deltaic.log

/**
 * A thread that works for all sessions, for as long as the JVM lives. It inherits nothing from the one that happens to be
 * the first to need it: Spark hands its session down to new threads, and that session would never be let go of.
 */
private[deltaic] object DaemonThread {

  def apply(task: Runnable, name: String): Thread = {
    val thread = new Thread(null, task, name, 0L, /* inheritThreadLocals = */ false)
    thread.setContextClassLoader(getClass.getClassLoader)
    thread.setDaemon(true)
    thread
  }
}
