package io.deltaic.spark.vacuum

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.commit.Message
import io.deltaic.spark.util.Cancellation

/**
 * What Python has planned.
 *
 * @param cutoffMs only files that were modified before are deleted
 * @param isLite whether the log is read for files to delete, instead of a listing
 * @param inventory a query of the files that may be deleted, if any
 */
private[spark] final case class VacuumRequest(
    cutoffMs: Long,
    isLite: Boolean,
    inventory: Option[String]
) {

  /** Finds what is to be deleted, in the newest version. Nothing is deleted yet. */
  def find(spark: SparkSession, log: DeltaLog): VacuumRun = {
    val snapshot = log.latest()
    val unused = new UnusedFiles(cutoffMs)
    val cancellation = Cancellation.of("VACUUM", log.table)
    try {
      val paths = new TablePaths(log.table)
      val used = new PathHashes
      new FilesInUse(spark, log, snapshot, cutoffMs, paths, used).add()
      new ShallowClones(spark, paths, used).addFilesOf(snapshot)
      val rule = UnusedRule(paths, HiddenNames.of(snapshot), used, cutoffMs)
      cancellation.check()
      if (isLite) new RemovedFiles(log, snapshot, rule, cancellation).findIn(unused)
      else
        inventory match {
          case Some(query) => new Inventory(spark, query, rule, cancellation).findIn(unused)
          case None => new TableListing(spark, rule, cancellation).findIn(unused)
        }
      new VacuumRun(spark, log, snapshot, this, rule.paths, unused, cancellation)
    } catch { case e: Throwable => unused.close(); throw e }
  }
}

private[spark] object VacuumRequest {

  /** @param body a record of this name */
  def of(body: ObjectNode): VacuumRequest = {
    Message.checked("VacuumRequest", body)
    VacuumRequest(
      body.get("cutoffMs").longValue,
      body.get("isLite").booleanValue,
      Option(body.get("inventory")).filter(_.isTextual).map(_.textValue)
    )
  }
}
