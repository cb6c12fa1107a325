package io.deltaic.spark

import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.atomic.AtomicBoolean

import scala.io.Source
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.log.DaemonThread
import io.deltaic.spark.util.SessionSettings

/**
 * The classes that the first query of a JVM loads. Loading them takes a large part of its time, so a background thread
 * loads them as soon as a session exists. It starts with the class that the query needs last, so that both meet half-way.
 *
 * `make first-query-classes` writes the list. A name that this Spark version does not have is skipped.
 */
private[spark] object FirstQueryClasses extends Logging {

  private val Resource = "first-query-classes.txt"
  private val Setting = SessionSettings.Prefix + "firstQuery.loadClasses"
  private val ThreadName = "deltaic-first-query-classes"
  private val SessionTimeoutMs = 60000L
  private val isStarted = new AtomicBoolean

  /** The names, in the order in which a query needs them. */
  def names: Seq[String] =
    Using.resource(Source.fromInputStream(getClass.getResourceAsStream(Resource), UTF_8.name))(
      _.getLines().toVector
    )

  /** Starts once a session exists, unless its setting disables it. Only the first session of a JVM is considered. */
  def loadInBackground(): Unit =
    if (isStarted.compareAndSet(false, true))
      DaemonThread(() => loadOnceThereIsASession(), ThreadName).start()

  /** Loads and verifies classes without initializing them, and returns how many it loaded. */
  def load(classNames: Seq[String]): Int = {
    val startedNs = System.nanoTime()
    val loaded = classNames.reverseIterator.flatMap(find).map(verify).size
    logDebug(s"$loaded classes loaded in ${(System.nanoTime() - startedNs) / 1000000} ms")
    loaded
  }

  private def find(name: String): Option[Class[_]] =
    try Some(Class.forName(name, false, getClass.getClassLoader))
    catch { case _: ClassNotFoundException | _: LinkageError => None }

  /** To list the constructors of a class, a JVM links the class; most of that work is bytecode verification. */
  private def verify(found: Class[_]): Unit =
    try {
      found.getDeclaredConstructors
      ()
    } catch { case _: LinkageError => () }

  /** A failure only makes the first query slower. */
  private def loadOnceThereIsASession(): Unit =
    try
      awaitSession() match {
        case Some(spark) => if (isEnabled(spark)) load(names)
        case None => isStarted.set(false)
      }
    catch { case NonFatal(e) => logDebug("The classes of the first query are not loaded", e) }

  /** Reads the context's configuration: that of the session would be created by reading it. */
  private def isEnabled(spark: SparkSession): Boolean =
    spark.sparkContext.getConf.getOption(Setting).flatMap(SessionSettings.parseFlag).getOrElse(true)

  /** Polls, since Spark has no callback for a session that is ready. */
  private def awaitSession(): Option[SparkSession] = {
    val deadlineNs = System.nanoTime() + SessionTimeoutMs * 1000000
    var found = SparkSession.getDefaultSession
    while (found.isEmpty && System.nanoTime() < deadlineNs) {
      Thread.sleep(2)
      found = SparkSession.getDefaultSession
    }
    found
  }
}
