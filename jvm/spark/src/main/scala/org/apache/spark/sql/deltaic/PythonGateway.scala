package org.apache.spark.sql.deltaic

import java.util.concurrent.{ExecutionException, FutureTask}

import org.apache.spark.SparkConf
import org.apache.spark.api.python.{Py4JServer, PythonUtils}
import org.apache.spark.internal.config.{PYSPARK_DRIVER_PYTHON, PYSPARK_PYTHON}

/** PySpark's authenticated loopback gateway, for a Python process that the JVM starts. */
final class PythonGateway(conf: SparkConf) {
  private val server = onDaemonThread(new Py4JServer(conf))

  def start(): Unit = onDaemonThread(server.start())
  def port: Int = server.getListeningPort
  def secret: String = server.secret
  def shutdown(): Unit = server.shutdown()

  /**
   * The gateway's threads inherit from the one that makes them whether they keep the JVM from
   * ending. They must not: a program ends with its `main`, whatever it committed on the way.
   */
  private def onDaemonThread[T](body: => T): T = {
    val task = new FutureTask[T](() => body)
    val thread = new Thread(task, "deltaic-python-gateway")
    thread.setDaemon(true)
    thread.start()
    try task.get()
    catch { case e: ExecutionException => throw e.getCause }
  }
}

object PythonGateway {

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
