package io.deltaic.spark

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Locale
import java.util.concurrent.atomic.AtomicBoolean

import scala.io.Source
import scala.util.Using

import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic.SparkSession

/**
 * The classes that a query loads when it is the first one. Loading them takes a good part of its time, so a thread of its own
 * loads them as soon as there is a session: the one that the query needs last comes first, and the two meet half-way.
 *
 * `make first-query-classes` writes the list. A name that this Spark does not have is passed over.
 */
private[spark] object FirstQueryClasses extends Logging {

  private val List_ = "first-query-classes.txt"
  private val Setting = SessionSettings.Prefix + "firstQuery.loadClasses"
  private val SoonMs = 60000L
  private val isBegun = new AtomicBoolean

  /** The names, in the order in which a query needs them. */
  lazy val names: Seq[String] =
    Using.resource(Source.fromInputStream(getClass.getResourceAsStream(List_), UTF_8.name))(
      _.getLines().toVector
    )

  /** Begins once there is a session, whose setting says whether; of all sessions in a JVM, for the first alone. */
  def loadInBackground(): Unit = if (isBegun.compareAndSet(false, true)) {
    val thread = new Thread(() => awaitSession().filter(isWanted).foreach(_ => load(names)))
    thread.setName("deltaic-first-query-classes")
    thread.setDaemon(true)
    thread.start()
  }

  /** Loads the classes, none of which is initialized, and returns how many there are. */
  def load(names: Seq[String]): Int = {
    val startedNs = System.nanoTime()
    val loaded = names.reverseIterator.count { name =>
      try {
        Class.forName(name, false, getClass.getClassLoader)
        true
      } catch { case _: ClassNotFoundException | _: LinkageError => false }
    }
    logDebug(s"$loaded classes loaded in ${(System.nanoTime() - startedNs) / 1000000} ms")
    loaded
  }

  /** Asked of the context: the settings of a session would be made here and now. */
  private def isWanted(spark: SparkSession): Boolean =
    spark.sparkContext.getConf.get(Setting, "true").trim.toLowerCase(Locale.ROOT) != "false"

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
