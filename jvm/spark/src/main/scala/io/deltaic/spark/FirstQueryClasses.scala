package io.deltaic.spark

import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.atomic.AtomicBoolean

import scala.io.Source
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.log.DaemonThread

/**
 * The classes that a query loads when it is the first one. Loading them takes a good part of its time, so a thread of its own
 * loads them as soon as there is a session: the one that the query needs last comes first, and the two meet half-way.
 *
 * `make first-query-classes` writes the list. A name that this Spark does not have is passed over.
 */
private[spark] object FirstQueryClasses extends Logging {

  private val Resource = "first-query-classes.txt"
  private val Setting = SessionSettings.Prefix + "firstQuery.loadClasses"
  private val ThreadName = "deltaic-first-query-classes"
  private val SoonMs = 60000L
  private val isBegun = new AtomicBoolean

  /** The names, in the order in which a query needs them. */
  def names: Seq[String] =
    Using.resource(Source.fromInputStream(getClass.getResourceAsStream(Resource), UTF_8.name))(
      _.getLines().toVector
    )

  /** Begins once there is a session, whose setting says whether; of all sessions in a JVM, for the first alone. */
  def loadInBackground(): Unit =
    if (isBegun.compareAndSet(false, true))
      DaemonThread(() => loadOnceThereIsASession(), ThreadName).start()

  /** Loads and verifies classes, none of which is initialized, and returns how many there are. */
  def load(classNames: Seq[String]): Int = {
    val startedNs = System.nanoTime()
    val loaded = classNames.reverseIterator.flatMap(find).map(verify).size
    logDebug(s"$loaded classes loaded in ${(System.nanoTime() - startedNs) / 1000000} ms")
    loaded
  }

  private def find(name: String): Option[Class[_]] =
    try Some(Class.forName(name, false, getClass.getClassLoader))
    catch { case _: ClassNotFoundException | _: LinkageError => None }

  /** Before a JVM tells the constructors of a class, it links it: most of that is to verify its code. */
  private def verify(found: Class[_]): Unit =
    try {
      found.getDeclaredConstructors
      ()
    } catch { case _: LinkageError => () }

  /** What fails here only takes the query longer. */
  private def loadOnceThereIsASession(): Unit =
    try
      awaitSession() match {
        case Some(spark) => if (isWanted(spark)) load(names)
        case None => isBegun.set(false)
      }
    catch { case NonFatal(e) => logDebug("The classes of a first query are not loaded", e) }

  /** Asked of the context: the settings of a session would be made here and now. */
  private def isWanted(spark: SparkSession): Boolean =
    spark.sparkContext.getConf.getOption(Setting).flatMap(SessionSettings.parseFlag).getOrElse(true)

  /** Nobody tells when a session is ready. */
  private def awaitSession(): Option[SparkSession] = {
    val deadlineNs = System.nanoTime() + SoonMs * 1000000
    var found = SparkSession.getDefaultSession
    while (found.isEmpty && System.nanoTime() < deadlineNs) {
      Thread.sleep(2)
      found = SparkSession.getDefaultSession
    }
    found
  }
}
