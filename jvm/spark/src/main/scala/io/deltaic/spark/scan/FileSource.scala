package io.deltaic.spark.scan

import java.time.ZoneId

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression

import io.deltaic.protocol.{AddFile, DeltaicException}
import io.deltaic.replay.Snapshot
import io.deltaic.spark.skipping.{FileSelection, FileStatsColumns, SnapshotStatistics}

/** The files a scan may choose from. Two equal sources offer the same files. */
private[spark] sealed trait FileSource {
  def table: Path
  def version: Long

  /** The files that may hold a row for which all filters are true. */
  def select(filters: Seq[Expression]): IndexedSeq[AddFile]
}

private[spark] object FileSource {

  /** The plan no longer holds filters that partition values decide, so a failure must not pass. */
  def refuseUndecided(
      table: Path,
      version: Long,
      file: String,
      filters: Seq[Expression]
  ): Nothing = throw new DeltaicException(
    "DELTAIC_UNDECIDED_PARTITION_FILTER",
    Map(
      "table" -> table.toString,
      "version" -> version.toString,
      "file" -> file,
      "filters" -> filters.map(_.sql).mkString(" AND ")
    )
  )
}

/** The active files of a snapshot, pruned by partition values and statistics. */
private[spark] final class SnapshotFiles(
    val snapshot: Snapshot,
    schema: TableSchema,
    zone: ZoneId
) extends FileSource {
  override def table: Path = snapshot.table
  override def version: Long = snapshot.version

  override def select(filters: Seq[Expression]): IndexedSeq[AddFile] = {
    val selection = FileSelection.select(statistics, filters)
    selection.undecided.headOption.foreach { file =>
      FileSource.refuseUndecided(table, version, snapshot.files.path(file), filters)
    }
    selection.files.toIndexedSeq.map(snapshot.files.add)
  }

  private def statistics: FileStatsColumns =
    SnapshotStatistics.of(snapshot, schema.skipping, zone)

  override def equals(other: Any): Boolean = other match {
    case that: SnapshotFiles => that.snapshot eq snapshot
    case _ => false
  }
  override def hashCode(): Int = System.identityHashCode(snapshot)
}

/** Exactly these files, with the deletion vectors they carry here: what a rewrite reads. */
private[spark] final case class ListedFiles(
    table: Path,
    version: Long,
    files: IndexedSeq[AddFile]
) extends FileSource {
  override def select(filters: Seq[Expression]): IndexedSeq[AddFile] = files
}
