package io.deltaic.spark.scan.files

import org.apache.spark.sql.classic.SparkSession

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.util.SessionSettings

/** The size of a checkpoint from which a snapshot is distributed: executors then prune its files. */
private[spark] object SnapshotSettings {

  /** Bytes of a checkpoint, such as `64m`; with a negative number no snapshot is distributed. */
  val DistributedThreshold = "spark.deltaic.snapshot.distributedThresholdBytes"

  /**
   * A byte of a checkpoint takes about 5 bytes of heap as long as a snapshot is held (454 for each file of 88, see
   * docs/decisions/0011-a-large-snapshot-stays-in-its-checkpoint.md), and some more while statistics are decoded. By
   * default that has to fit in a quarter of the heap, which is the limit for all cached snapshots together.
   */
  private val HeapShare = 4L
  private val HeapBytesPerByte = 8L

  def maxInMemoryBytes(spark: SparkSession): Long =
    spark.conf.getOption(DistributedThreshold) match {
      case None => Runtime.getRuntime.maxMemory / HeapShare / HeapBytesPerByte
      case Some(text) =>
        val bytes = SessionSettings.parseBytes(DistributedThreshold, text)
        if (bytes < 0) DeltaLog.NeverDistributed else bytes
    }
}
