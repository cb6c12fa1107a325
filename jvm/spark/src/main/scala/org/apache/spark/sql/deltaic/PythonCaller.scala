package org.apache.spark.sql.deltaic

import java.io.IOException
import java.lang.reflect.Proxy

import scala.util.Try

import py4j.reflection.PythonProxyHandler
import py4j.{Gateway, Py4JPythonClientPerThread}

/**
 * The thread of Python that waits for a statement. On Ctrl-C, PySpark cancels the jobs that run, and the thread goes on. A
 * statement that is between two jobs has to notice that itself: it may not commit what the user has cancelled.
 */
object PythonCaller {
  @volatile private var clients: Seq[Py4JPythonClientPerThread] = Nil

  /** @param proxy an object of Python, by whose gateway Python calls this JVM */
  def register(proxy: AnyRef): Unit =
    clients = Option.when(Proxy.isProxyClass(proxy.getClass))(Proxy.getInvocationHandler(proxy))
      .collect { case handler: PythonProxyHandler => handler }
      .flatMap(gatewayOf)
      .map(_.getCallbackClient)
      .collect { case client: Py4JPythonClientPerThread => client }
      .toSeq

  /**
   * Fails if the statement of this thread has been cancelled: if the thread is interrupted, as the Thrift server and Spark
   * Connect do it, or if Python no longer waits for it.
   */
  def requireWaiting(): Unit =
    if (Thread.currentThread.isInterrupted)
      throw new InterruptedException("The thread of the statement was interrupted")
    else if (clients.exists(hasGone))
      throw new InterruptedException(
        "Python does not wait for the statement, since it was cancelled"
      )

  /**
   * While Python waits, it sends nothing but responses. PySpark's handler of Ctrl-C sends a request on the same connection,
   * and closes it.
   */
  private def hasGone(client: Py4JPythonClientPerThread): Boolean =
    Option(client.getPerThreadConnection).filterNot(_.isInitiatedFromClient).exists { connection =>
      try connection.getSocket.getInputStream.available > 0
      catch { case _: IOException => true }
    }

  private def gatewayOf(handler: PythonProxyHandler): Option[Gateway] = Try {
    val field = classOf[PythonProxyHandler].getDeclaredField("gateway")
    field.setAccessible(true)
    field.get(handler).asInstanceOf[Gateway]
  }.toOption
}
