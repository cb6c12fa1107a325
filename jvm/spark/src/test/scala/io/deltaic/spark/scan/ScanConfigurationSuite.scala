package io.deltaic.spark.scan

import scala.jdk.CollectionConverters._

import org.apache.parquet.hadoop.ParquetInputFormat
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic.{SparkSession => ClassicSession}
import org.apache.spark.sql.deltaic.ScanConfiguration
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.spark.write.LocalSpark

/** Scans share what is the same for them, and nothing else. */
class ScanConfigurationSuite extends munit.FunSuite with LocalSpark {

  private def broadcast(
      session: SparkSession = spark,
      options: Map[String, String] = Map.empty
  ): Broadcast[SerializableConfiguration] =
    ScanConfiguration.broadcast(
      session.asInstanceOf[ClassicSession],
      new CaseInsensitiveStringMap(options.asJava)
    )

  private def value(shared: Broadcast[SerializableConfiguration], key: String): Option[String] =
    Option(shared.value.value.get(key))

  test("scans of equal settings have one broadcast, whatever their session") {
    val first = broadcast()
    assert(broadcast() eq first)
    assert(broadcast(spark.newSession()) eq first)
    val withOption = broadcast(options = Map("fs.test.key" -> "a"))
    assert(withOption ne first)
    assert(broadcast(options = Map("fs.test.key" -> "a")) eq withOption)
  }

  test("a setting that changes is seen by the next scan and by none before it") {
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

  test("what the readers of one scan need is in no other's configuration") {
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

  test("settings that nobody has asked for lately are not kept") {
    val first = broadcast()
    (1 to 40).foreach(i => broadcast(options = Map("fs.test.key" -> s"$i")))
    assert(broadcast() ne first)
  }
}
