package io.deltaic.spark.scan

import java.time.ZoneId

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression

import io.deltaic.protocol.{AddFile, DeltaicException}
import io.deltaic.replay.Snapshot
import io.deltaic.spark.skipping.{FileRows, FileSelection, FileStatsColumns, SnapshotStatistics}

/** The files a scan may choose from. Two equal sources offer the same files. */
private[spark] sealed trait FileSource {
  def table: Path
  def version: Long

  /** The files that may hold a row for which all filters are true. */
  def select(filters: Seq[Expression]): IndexedSeq[AddFile]

  /** What the log says of the rows of those files; none where that would have to be found out first. */
  def rows(filters: Seq[Expression]): Option[FileRows]
}

/** The active files of a snapshot, pruned by partition values and statistics. */
private[spark] final class SnapshotFiles(
    val snapshot: Snapshot,
    schema: TableSchema,
    zone: ZoneId
) extends FileSource {
  override def table: Path = snapshot.table
  override def version: Long = snapshot.version

  /** The last selection: a scan selects its files, and asks about their rows, by the same filters. */
  @volatile private var selected: Option[(Seq[Expression], Array[Int])] = None

  override def select(filters: Seq[Expression]): IndexedSeq[AddFile] = add(ordinals(filters))

  override def rows(filters: Seq[Expression]): Option[FileRows] =
    Some(new FileRows(statistics, ordinals(filters), deletedRows))

  private[scan] def add(files: Array[Int]): IndexedSeq[AddFile] =
    files.toIndexedSeq.map(snapshot.files.add)

  private def ordinals(filters: Seq[Expression]): Array[Int] = selected match {
    case Some((sameFilters, files)) if sameFilters eq filters => files
    case _ =>
      val selection = FileSelection.select(statistics, filters)
      selection.undecided.headOption.foreach(refuse(_, filters))
      selected = Some((filters, selection.files))
      selection.files
  }

  private def deletedRows(file: Int): Long = snapshot.files.deletionVector(file) match {
    case null => 0L
    case vector => vector.cardinality
  }

  private def statistics: FileStatsColumns =
    SnapshotStatistics.of(snapshot, schema.skipping, zone)

  /** The plan no longer holds filters that partition values decide, so a failure must not pass. */
  private def refuse(file: Int, filters: Seq[Expression]): Nothing = throw new DeltaicException(
    "DELTAIC_UNDECIDED_PARTITION_FILTER",
    Map(
      "table" -> table.toString,
      "version" -> version.toString,
      "file" -> snapshot.files.path(file),
      "filters" -> filters.map(_.sql).mkString(" AND ")
    )
  )

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
  override def rows(filters: Seq[Expression]): Option[FileRows] = None
}

/**
 * The first files of a selection that together have at least `limit` rows. Sound only for a scan of
 * which every row is wanted, that is, whose filters are all decided by partition values.
 */
private[spark] final case class LimitedFiles(all: SnapshotFiles, limit: Long) extends FileSource {
  override def table: Path = all.table
  override def version: Long = all.version

  override def select(filters: Seq[Expression]): IndexedSeq[AddFile] = all.add(first(filters))

  override def rows(filters: Seq[Expression]): Option[FileRows] =
    all.rows(filters).map(_.of(first(filters)))

  /** A file that does not say how many rows it has is read, and counts for nothing. */
  private def first(filters: Seq[Expression]): Array[Int] = {
    val rows = all.rows(filters).get
    var found = 0L
    rows.files.takeWhile { file =>
      val wanted = found < limit
      if (wanted) found += rows.live(file).getOrElse(0L)
      wanted
    }
  }
}
