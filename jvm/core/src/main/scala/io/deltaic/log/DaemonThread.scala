package io.deltaic.log

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
}
