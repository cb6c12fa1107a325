package io.deltaic.spark.commit

import java.io.{BufferedReader, File, IOException, InputStreamReader}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{ConcurrentLinkedDeque, CountDownLatch, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.PythonGateway

import io.deltaic.log.DaemonThread
import io.deltaic.protocol.DeltaicException

/**
 * The Python process that runs the committer for a JVM with no Python driver, such as `spark-sql`, a
 * Thrift server or a Scala program. It runs the same package, from the sources inside the jar.
 *
 * The process ends with this JVM: it reads its standard input until that closes.
 */
private[spark] final class CommitterProcess private (process: Process, gateway: PythonGateway) {
  private val atExit = sys.addShutdownHook(end())

  def isAlive: Boolean = process.isAlive

  /** Stops the process, if it still runs, and its gateway. */
  def stop(): Unit = {
    atExit.remove()
    end()
  }

  private def end(): Unit = {
    try process.getOutputStream.close()
    catch { case _: IOException => () } // the process is gone, and its end of the pipe with it
    if (!process.waitFor(CommitterProcess.stopTimeoutSeconds, TimeUnit.SECONDS))
      process.destroyForcibly()
    gateway.shutdown()
  }
}

private[spark] object CommitterProcess {
  private val readyLine = "DELTAIC-COMMITTER READY"
  private val startTimeoutSeconds = 60L
  private val stopTimeoutSeconds = 5L
  private val keptOutputLines = 40

  /** Returns when the process has registered its committer; an error names the setting to change. */
  def start(spark: SparkSession): CommitterProcess = {
    val conf = spark.sparkContext.getConf
    val python = PythonGateway.pythonExecutable(conf)
    val gateway = new PythonGateway(conf)
    gateway.start()
    var started: Option[Process] = None
    try {
      val process = launch(python, gateway)
      started = Some(process)
      val output = new Output(process)
      if (!output.awaitReady()) throw new IOException(output.tail)
      new CommitterProcess(process, gateway)
    } catch {
      case e: Throwable =>
        started.foreach(_.destroyForcibly())
        gateway.shutdown()
        throw e match {
          case failure: IOException =>
            DeltaicException(
              "DELTAIC_PYTHON_UNAVAILABLE",
              Map("python" -> python, "reason" -> failure.getMessage),
              failure
            )
          case other => other
        }
    }
  }

  /**
   * Runs the module as `-m` does, but without the working directory on the path: a package of the same name
   * there is not ours.
   */
  private val run =
    "import runpy, sys; sys.path[:] = [p for p in sys.path if p]; " +
      "runpy.run_module('deltaic.spark.committer_process', run_name='__main__')"

  private def launch(python: String, gateway: PythonGateway): Process = {
    val builder = new ProcessBuilder(python, "-c", run)
    val environment = builder.environment()
    val path =
      Seq(embeddedSources, PythonGateway.sparkPythonPath, sys.env.getOrElse("PYTHONPATH", ""))
    environment.put("PYTHONPATH", path.filter(_.nonEmpty).mkString(File.pathSeparator))
    environment.put("PYTHONUNBUFFERED", "YES")
    environment.put("PYSPARK_GATEWAY_PORT", gateway.port.toString)
    environment.put("PYSPARK_GATEWAY_SECRET", gateway.secret)
    builder.redirectErrorStream(true).start()
  }

  /** Python imports from a jar as from any zip file; the sources are stored under one folder in it. */
  private def embeddedSources: String = {
    val location = new File(getClass.getProtectionDomain.getCodeSource.getLocation.toURI)
    new File(location, "deltaic-python").getPath
  }

  /** Follows the process's output: waits for its ready line and keeps the last lines for errors. */
  private final class Output(process: Process) {
    private val lines = new ConcurrentLinkedDeque[String]()
    private val settled = new CountDownLatch(1)
    @volatile private var ready = false

    DaemonThread(() => forwardLines(), "deltaic-committer-output").start()

    def awaitReady(): Boolean = {
      settled.await(startTimeoutSeconds, TimeUnit.SECONDS)
      ready
    }

    def tail: String = lines.asScala.mkString("\n")

    private def forwardLines(): Unit = {
      val source = new BufferedReader(new InputStreamReader(process.getInputStream, UTF_8))
      try
        Iterator.continually(source.readLine()).takeWhile(_ != null).foreach { line =>
          if (line.trim == readyLine) {
            ready = true
            settled.countDown()
          } else {
            lines.add(line)
            if (lines.size > keptOutputLines) lines.poll()
          }
        }
      catch { case _: IOException => () } // the process was ended while its output was read
      finally settled.countDown()
    }
  }
}
