package io.deltaic.spark.catalog

import java.time.Instant
import java.util.concurrent.TimeUnit

import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable, TableProperties}
import io.deltaic.replay.{DeltaLog, Snapshot, VacuumedVersion}
import io.deltaic.spark.util.SessionSettings

/**
 * Refuses a version whose files VACUUM may have deleted: one that is not the newest and is
 * older than the table's deleted file retention.
 */
private[catalog] object DeletedFileRetention {

  /** Set to false by users who know that the files still exist. */
  private val setting = "vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"

  def check(spark: SparkSession, log: DeltaLog, snapshot: Snapshot): Unit =
    if (isEnforced(spark)) {
      val latest = log.latest()
      val ageMs = System.currentTimeMillis() - snapshot.timestampMs
      TableProperties.deletedFileRetentionMs(latest.metadata).foreach { retentionMs =>
        if (snapshot.version != latest.version && ageMs > retentionMs)
          throw expired(log, snapshot, retentionMs)
      }
    }

  private def isEnforced(spark: SparkSession): Boolean =
    SessionSettings.isOn(spark, setting, default = true)

  private def expired(log: DeltaLog, snapshot: Snapshot, retentionMs: Long): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_VERSION_BEYOND_FILE_RETENTION",
      Map(
        "table" -> log.table.toString,
        "version" -> snapshot.version.toString,
        "versionTimestamp" -> Instant.ofEpochMilli(snapshot.timestampMs).toString,
        "retentionHours" -> TimeUnit.MILLISECONDS.toHours(retentionMs).toString,
        "vacuum" -> VacuumedVersion.find(log, snapshot.version)
          .fold("VACUUM")(run => s"VACUUM at ${Instant.ofEpochMilli(run.timeMs)}"),
        "setting" -> (SessionSettings.Prefix + setting)
      )
    )
}
