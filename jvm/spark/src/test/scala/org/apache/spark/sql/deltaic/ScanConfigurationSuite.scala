package org.apache.spark.sql.deltaic

import scala.concurrent.duration._
import scala.concurrent.{Await, ExecutionContext, Future}
import scala.jdk.CollectionConverters._

import org.apache.parquet.hadoop.ParquetInputFormat
import org.apache.spark.JobArtifactSet
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.deltaic.scan.ScanConfiguration
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.spark.util.LocalSpark

/** Scans share equal configurations, and nothing else. */
class ScanConfigurationSuite extends munit.FunSuite with LocalSpark {

  private val lastCommit = "spark.databricks.delta.lastCommitVersionInSession"

  private def broadcast(
      session: SparkSession = spark,
      options: Map[String, String] = Map.empty
  ): Broadcast[SerializableConfiguration] = ScanConfiguration.broadcast(
    session.asInstanceOf[ClassicSession],
    new CaseInsensitiveStringMap(options.asJava),
    lastCommit
  )

  private def value(shared: Broadcast[SerializableConfiguration], key: String): Option[String] =
    Option(shared.value.value.get(key))

  test("scans of a session with equal settings have one broadcast") {
    val first = broadcast()
    assert(broadcast() eq first)
    spark.conf.set(lastCommit, 7L)
    try assert(broadcast() eq first)
    finally spark.conf.unset(lastCommit)
    val withOption = broadcast(options = Map("fs.test.key" -> "a"))
    assert(withOption ne first)
    assert(broadcast(options = Map("fs.test.key" -> "a")) eq withOption)
  }

  test("a session with its own class loader in executors has its own broadcast") {
    val first = broadcast()
    val session = spark.newSession()
    val other = broadcast(session)
    assert(other ne first)
    val state = session.asInstanceOf[ClassicSession].artifactManager.state
    JobArtifactSet.withActiveJobArtifactState(state) {
      assert(broadcast(session) eq other)
    }
  }

  test("scans that are planned concurrently have one broadcast") {
    val options = Map("fs.test.key" -> "at once")
    implicit val threads: ExecutionContext = ExecutionContext.global
    val found = Future.traverse((1 to 8).toList)(_ => Future(broadcast(options = options)))
    assertEquals(Await.result(found, 1.minute).distinct.size, 1)
  }

  test("a changed setting applies to the next scan and to none before it") {
    val key = "fs.test.secret"
    val before = broadcast()
    spark.sparkContext.hadoopConfiguration.set(key, "one")
    try {
      val one = broadcast()
      spark.sparkContext.hadoopConfiguration.set(key, "two")
      assertEquals(
        Seq(before, one, broadcast()).map(value(_, key)),
        Seq(None, Some("one"), Some("two"))
      )
    } finally spark.sparkContext.hadoopConfiguration.unset(key)
    assert(broadcast() eq before)
    val session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    assertEquals(
      Seq(spark, session).map(s => value(broadcast(s), "spark.sql.session.timeZone")),
      Seq(spark, session).map(s => s.conf.getOption("spark.sql.session.timeZone"))
    )
  }

  test("the settings of one scan's readers are in no other scan's configuration") {
    val shared = broadcast()
    val columns = new StructType().add("a", "int")
    val scan =
      ScanConfiguration.of(new SQLConf, shared, columns, byFieldId = false)
    val readSupport = ParquetInputFormat.READ_SUPPORT_CLASS
    assert(scan.newJob().get(readSupport) != null)
    assertEquals(scan.hadoop.get(readSupport), null)
    scan.newJob().set("fs.test.key", "a")
    assertEquals(value(shared, "fs.test.key"), None)
  }

  test("an application that starts after another one has its own broadcast") {
    val before = broadcast()
    spark.stop()
    SparkSession.clearActiveSession()
    beforeAll()
    val after = broadcast()
    assert(after ne before)
    assertEquals(after.value.value.get("fs.test.key"), null)
  }

  test("settings that were not requested lately are not cached") {
    val first = broadcast()
    (1 to 40).foreach(i => broadcast(options = Map("fs.test.key" -> s"$i")))
    assert(broadcast() ne first)
  }
}
