package io.deltaic.upkeep

import java.nio.file.Files

import scala.jdk.CollectionConverters._

import io.deltaic.TableBuilder
import io.deltaic.protocol._
import io.deltaic.replay.{DeltaLog, Snapshot}

/** What tests of upkeep share: a plain layout, and how two states of a table are compared. */
object UpkeepFixture {

  val plain: CheckpointLayout = CheckpointLayout(hasJsonStats = true, None, Nil)

  /** Folders of partitions are named by the values alone, `-` for null. */
  def upkeep(log: DeltaLog, layoutOf: Snapshot => CheckpointLayout): Upkeep = new Upkeep(
    log,
    layoutOf,
    snapshot =>
      values =>
        snapshot.metadata.partitionColumns.map(c => Option(values(c)).getOrElse("-")).mkString("/")
  )

  def run(table: TableBuilder, version: Long, tasks: UpkeepTask*): Upkeep =
    runWith(table, plain, version, tasks: _*)

  def runWith(
      table: TableBuilder,
      layout: CheckpointLayout,
      version: Long,
      tasks: UpkeepTask*
  ): Upkeep = {
    val upkeep = this.upkeep(table.open(), _ => layout)
    upkeep.run(version, tasks)
    upkeep
  }

  /** Everything that a snapshot says, in an order that does not depend on how it was read. */
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

  /** Leaves nothing but checkpoints: the state must come from them. */
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
