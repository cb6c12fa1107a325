package io.deltaic.spark.vacuum

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.WriteInternals
import org.slf4j.LoggerFactory

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable, TableProperties}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.scan.files.SnapshotSettings
import io.deltaic.spark.util.{Json, SessionSettings}

/**
 * The files of a table that its shallow clones use, and the clones of these. The table knows its clones by the metadata
 * domain `deltaic.shallowClones`, which CLONE sets (`deltaic.commands.shallow_clones`).
 */
private[vacuum] final class ShallowClones(
    spark: SparkSession,
    paths: TablePaths,
    hashes: PathHashes
) {
  import ShallowClones._

  private val visited = mutable.Set(paths.table)

  /** Adds the hashes of the paths of the files that the clones of a table need. */
  def addFilesOf(snapshot: Snapshot): Unit =
    if (SessionSettings.isOn(spark, "vacuum.keepFilesOfShallowClones.enabled", default = true))
      clonesOf(snapshot).foreach { path =>
        try {
          val log = logOf(path)
          if (visited.add(log.table)) newest(log).foreach(add(log, _))
        } catch {
          case NonFatal(e) =>
            throw DeltaicException(
              "DELTAIC_SHALLOW_CLONE_UNREADABLE",
              Map(
                "table" -> paths.table.toString,
                "clone" -> path,
                "reason" -> e.getMessage
              ),
              e
            )
        }
      }

  private def logOf(path: String): DeltaLog = {
    val conf = WriteInternals.hadoopConf(spark, Map.empty)
    val table = new Path(path)
    DeltaLog.forTable(
      table.getFileSystem(conf).makeQualified(table),
      conf,
      SnapshotSettings.maxInMemoryBytes(spark)
    )
  }

  private def add(log: DeltaLog, snapshot: Snapshot): Unit = {
    val retentionMs = TableProperties.deletedFileRetentionMs(snapshot.metadata)
    val cutoffMs = retentionMs.fold(Long.MinValue)(System.currentTimeMillis - _)
    new FilesInUse(spark, log, snapshot, cutoffMs, paths.usedBy(log.table), hashes).add()
    logger.info("Table {}: VACUUM keeps the files of the shallow clone {}", paths.table, log.table)
    addFilesOf(snapshot)
  }

  /** The newest version of a clone, or of another table that is there now; none if there is no table. */
  private def newest(log: DeltaLog): Option[Snapshot] =
    try Some(log.latest())
    catch { case e: DeltaicThrowable if e.condition == "DELTAIC_NOT_A_TABLE" => None }
}

private[vacuum] object ShallowClones {
  private val logger = LoggerFactory.getLogger(classOf[ShallowClones])
  private val Domain = "deltaic.shallowClones"

  /** The paths of the clones; a domain that a user has set to something else is an error. */
  private def clonesOf(snapshot: Snapshot): Seq[String] =
    snapshot.domains.get(Domain).toSeq.flatMap { domain =>
      val clones = Json.tryParse(domain.configuration).map(_.path("clones")).filter(_.isArray)
      val found = clones.fold(invalid(snapshot))(_.elements.asScala.toSeq)
      if (found.forall(_.isTextual)) found.map(_.asText) else invalid(snapshot)
    }

  private def invalid(snapshot: Snapshot): Nothing = throw DeltaicException(
    "DELTAIC_DOMAIN_INVALID",
    Map(
      "table" -> snapshot.table.toString,
      "domain" -> Domain,
      "reason" -> "it is no list of paths"
    )
  )
}
