package io.deltaic.maintenance

import java.nio.file.Files

import scala.jdk.CollectionConverters._

import io.deltaic.TableBuilder
import io.deltaic.protocol._
import io.deltaic.replay.{DeltaLog, Snapshot}

/** Shared by maintenance tests: a simple layout, and the comparison of table states. */
object MaintenanceFixture {

  val plain: CheckpointLayout = CheckpointLayout(hasJsonStats = true, None, Nil)

  /** Partition folders are named by the values only, `-` for null. */
  def maintenance(
      log: DeltaLog,
      layoutOf: Snapshot => CheckpointLayout
  ): Maintenance = new Maintenance(
    log,
    layoutOf,
    snapshot =>
      values =>
        snapshot.metadata.partitionColumns.map(c => Option(values(c)).getOrElse("-")).mkString("/")
  )

  def run(table: TableBuilder, version: Long, tasks: MaintenanceTask*): Maintenance =
    runWith(table, plain, version, tasks: _*)

  def runWith(
      table: TableBuilder,
      layout: CheckpointLayout,
      version: Long,
      tasks: MaintenanceTask*
  ): Maintenance = {
    val maintenance = this.maintenance(table.open(), _ => layout)
    maintenance.run(version, tasks)
    maintenance
  }

  /** The complete content of a snapshot, in an order that does not depend on how it was read. */
  def state(snapshot: Snapshot): Map[String, Any] = Map(
    "version" -> snapshot.version,
    "protocol" -> snapshot.protocol,
    "metadata" -> snapshot.metadata,
    "files" -> (0 until snapshot.files.size).map(snapshot.files.add).toSet,
    "tombstones" -> snapshot.tombstones.map(_.copy(dataChange = false)).toSet,
    "transactions" -> snapshot.transactions,
    "domains" -> snapshot.domains
  )

  def latest(table: TableBuilder): Map[String, Any] = state(table.open().latest())

  def names(table: TableBuilder): Seq[String] = {
    val found = Files.list(table.log)
    try found.iterator.asScala.map(_.getFileName.toString).toSeq.sorted
    finally found.close()
  }

  def checkpoints(table: TableBuilder): Seq[String] = names(table).filter(_.contains(".checkpoint"))

  /** Deletes everything but checkpoints, so that the state must come from them. */
  def withoutCommits(table: TableBuilder): DeltaLog = {
    names(table).filter(_.matches("\\d{20}\\.json")).foreach(table.delete)
    table.open()
  }

  def remove(path: String, ageMs: Long = 1000): RemoveFile = RemoveFile(
    path,
    Some(System.currentTimeMillis - ageMs),
    dataChange = true,
    extendedFileMetadata = Some(true),
    partitionValues = Map("p" -> null),
    sizeBytes = Some(5),
    baseRowId = Some(9),
    defaultRowCommitVersion = Some(1)
  )
}
