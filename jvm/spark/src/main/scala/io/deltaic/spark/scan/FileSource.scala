package io.deltaic.spark.scan

import io.deltaic.protocol.AddFile
import io.deltaic.replay.Snapshot
import io.deltaic.spark.skipping.{FileSelection, SnapshotStatistics}
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression

/** The files a scan may choose from. Two equal sources offer the same files. */
private[spark] sealed trait FileSource {
  def table: Path
  def version: Long

  /** The files that may hold a row for which all filters are true. */
  def select(filters: Seq[Expression]): IndexedSeq[AddFile]
}

/** The active files of a snapshot, pruned by partition values and statistics. */
private[spark] final class SnapshotFiles(val snapshot: Snapshot, statistics: SnapshotStatistics)
    extends FileSource {
  override def table: Path = snapshot.table
  override def version: Long = snapshot.version

  override def select(filters: Seq[Expression]): IndexedSeq[AddFile] =
    FileSelection.select(statistics, filters).ordinals.toIndexedSeq.map(snapshot.files.add)

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
