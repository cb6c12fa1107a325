package io.deltaic.spark.catalog

import org.apache.spark.sql.classic.SparkSession

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.SessionSettings

/** From which size on a table's files are left in its checkpoint, for executors to choose from. */
private[catalog] object SnapshotSettings {

  /** Bytes of a checkpoint, such as `64m`; a negative number leaves no checkpoint to the executors. */
  val DistributedThreshold = "spark.deltaic.snapshot.distributedThresholdBytes"

  /**
   * A byte of a checkpoint takes about 5 bytes of heap as long as a snapshot is held (454 for each file of 88, see
   * docs/decisions/0011-a-large-snapshot-stays-in-its-checkpoint.md), and some more while statistics are decoded. By
   * default that has to fit in a quarter of the heap, which is what all snapshots together may keep.
   */
  private val HeapShare = 4L
  private val HeapBytesPerByte = 8L

  def bytesInMemory(spark: SparkSession): Long =
    spark.conf.getOption(DistributedThreshold) match {
      case None => Runtime.getRuntime.maxMemory / HeapShare / HeapBytesPerByte
      case Some(text) =>
        val bytes = SessionSettings.parseBytes(DistributedThreshold, text)
        if (bytes < 0) DeltaLog.NeverDistributed else bytes
    }
}
