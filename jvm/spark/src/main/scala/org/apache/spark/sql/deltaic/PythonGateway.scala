package org.apache.spark.sql.deltaic

import java.util.concurrent.{ExecutionException, FutureTask}

import org.apache.spark.SparkConf
import org.apache.spark.api.python.{Py4JServer, PythonUtils}
import org.apache.spark.internal.config.{PYSPARK_DRIVER_PYTHON, PYSPARK_PYTHON}

/** PySpark's authenticated loopback gateway, for a Python process started by the JVM. */
final class PythonGateway(conf: SparkConf) {
  private val server = PythonGateway.onOwnThread(new Py4JServer(conf))

  def start(): Unit = PythonGateway.onOwnThread(server.start())
  def port: Int = server.getListeningPort
  def secret: String = server.secret
  def shutdown(): Unit = server.shutdown()
}

object PythonGateway {

  /**
   * The gateway's threads inherit from the thread that creates them. They must be daemons, so that
   * a program that committed still exits with its `main`. They serve all commits, so they must not
   * inherit the first commit's job description, job group and call site. They can load the same
   * user classes as the session.
   */
  private[deltaic] def onOwnThread[T](body: => T): T = {
    val task = new FutureTask[T](() => body)
    val name = "deltaic-python-gateway"
    val thread = new Thread(null, task, name, 0L, /* inheritThreadLocals = */ false)
    thread.setContextClassLoader(Thread.currentThread.getContextClassLoader)
    thread.setDaemon(true)
    thread.start()
    try task.get()
    catch { case e: ExecutionException => throw e.getCause }
  }

  /** Where PySpark and Py4J are in this distribution of Spark. */
  def sparkPythonPath: String = PythonUtils.sparkPythonPath

  /** The interpreter that Spark itself would start for a Python driver. */
  def pythonExecutable(conf: SparkConf): String =
    conf
      .get(PYSPARK_DRIVER_PYTHON)
      .orElse(conf.get(PYSPARK_PYTHON))
      .orElse(sys.env.get("PYSPARK_DRIVER_PYTHON"))
      .orElse(sys.env.get("PYSPARK_PYTHON"))
      .getOrElse("python3")
}
