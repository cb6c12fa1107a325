package io.deltaic.spark.vacuum

import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.sql.classic.SparkSession
import org.slf4j.LoggerFactory

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable, TableProperties}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.catalog.TableLocation
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
      clonesOf(snapshot).foreach { clone =>
        val log = TableLocation.log(spark, clone.path)
        if (visited.add(log.table)) {
          try found(log, clone.id).foreach(add(log, _))
          catch {
            case NonFatal(e) =>
              throw DeltaicException(
                "DELTAIC_SHALLOW_CLONE_UNREADABLE",
                Map(
                  "table" -> paths.table.toString,
                  "clone" -> log.table.toString,
                  "reason" -> e.getMessage
                ),
                e
              )
          }
        }
      }

  private def add(log: DeltaLog, snapshot: Snapshot): Unit = {
    val retentionMs = TableProperties.deletedFileRetentionMs(snapshot.metadata)
    val cutoffMs = retentionMs.fold(Long.MinValue)(System.currentTimeMillis - _)
    new FilesInUse(spark, log, snapshot, cutoffMs, paths.usedBy(log.table), hashes).add()
    logger.info("Table {}: VACUUM keeps the files of the shallow clone {}", paths.table, log.table)
    addFilesOf(snapshot)
  }

  /** The newest version of a clone; none if it has been dropped, or if another table is there now. */
  private def found(log: DeltaLog, id: String): Option[Snapshot] =
    try Some(log.latest()).filter(_.metadata.id == id)
    catch { case e: DeltaicThrowable if e.condition == "DELTAIC_NOT_A_TABLE" => None }
}

private[vacuum] object ShallowClones {
  private val logger = LoggerFactory.getLogger(classOf[ShallowClones])
  private val Domain = "deltaic.shallowClones"

  private final case class ShallowClone(id: String, path: String)

  /** A domain that a user has set to something else is an error. */
  private def clonesOf(snapshot: Snapshot): Seq[ShallowClone] =
    snapshot.domains.get(Domain).toSeq.flatMap { domain =>
      val clones = Json.tryParse(domain.configuration).map(_.path("clones")).filter(_.isArray)
      clones.fold(invalid(snapshot, "it is no list of clones"))(_.elements.asScala.toSeq).map {
        clone => ShallowClone(clone.path("id").asText, clone.path("path").asText)
      }
    }

  private def invalid(snapshot: Snapshot, reason: String): Nothing = throw DeltaicException(
    "DELTAIC_DOMAIN_INVALID",
    Map("table" -> snapshot.table.toString, "domain" -> Domain, "reason" -> reason)
  )
}
