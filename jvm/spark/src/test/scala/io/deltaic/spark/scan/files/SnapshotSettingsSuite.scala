package io.deltaic.spark.scan.files

import org.apache.spark.sql.classic

import io.deltaic.protocol.DeltaicThrowable
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.util.LocalSpark

class SnapshotSettingsSuite extends munit.FunSuite with LocalSpark {

  private def maxInMemoryBytes(setting: Option[String]): Long = {
    val session = spark.asInstanceOf[classic.SparkSession].newSession()
    setting.foreach(session.conf.set(SnapshotSettings.DistributedThreshold, _))
    SnapshotSettings.maxInMemoryBytes(session)
  }

  test("by default a snapshot is distributed if its checkpoint exceeds 1/32 of the heap") {
    assertEquals(maxInMemoryBytes(None), Runtime.getRuntime.maxMemory / 32)
  }

  Seq("12345" -> 12345L, "0" -> 0L, "64m" -> (64L << 20), "-1" -> DeltaLog.NeverDistributed)
    .foreach { case (text, bytes) =>
      test(s"set to $text, the limit is $bytes bytes") {
        assertEquals(maxInMemoryBytes(Some(text)), bytes)
      }
    }

  test("a setting that is not a number of bytes is refused") {
    val e = intercept[DeltaicThrowable](maxInMemoryBytes(Some("much")))
    assertEquals(e.condition, "DELTAIC_INVALID_SESSION_SETTING")
  }
}
