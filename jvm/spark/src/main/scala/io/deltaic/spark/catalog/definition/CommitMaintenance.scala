package io.deltaic.spark.catalog.definition

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.SessionInternals

import io.deltaic.maintenance.{Maintenance, MaintenanceQueue}
import io.deltaic.protocol.AddFile
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.commit.MaintenanceRequest
import io.deltaic.spark.optimize.AutoCompaction
import io.deltaic.spark.scan.files.FileSplits
import io.deltaic.spark.schema.PartitionFolders
import io.deltaic.spark.write.files.CheckpointColumns

/** Runs the maintenance that is due after a commit. */
private[spark] object CommitMaintenance {

  def of(spark: SparkSession, log: DeltaLog): Maintenance = {
    val zone = FileSplits.sessionZone(spark)
    new Maintenance(log, CheckpointColumns.of(_, zone), PartitionFolders.of)
  }

  /**
   * Runs it here or on a background thread; failures are logged. Background threads have no active session, so the
   * tasks run under the settings of this one.
   *
   * @param added the files that the commit has added to the table
   */
  def run(
      spark: SparkSession,
      log: DeltaLog,
      version: Long,
      request: MaintenanceRequest,
      added: => Seq[AddFile] = Nil
  ): Unit = {
    if (request.tasks.nonEmpty) {
      val maintenance = of(spark, log)
      val due = maintenance.due(version, request.tasks)
      val work = SessionInternals.underSettingsOf(spark)(due)
      if (request.inBackground) MaintenanceQueue.submit(maintenance.table)(work) else work()
    }
    if (request.compactsFiles) {
      val compaction = AutoCompaction.submit(spark, log, added)
      if (!request.inBackground) compaction.get()
    }
  }
}
