package io.deltaic.spark.scan

import java.time.ZoneId

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression

import io.deltaic.protocol.AddFile
import io.deltaic.replay.{FileBlock, FileTable, TableSize}
import io.deltaic.spark.skipping.{FileRows, FileSelection, FileStatsColumns}

/**
 * What decides which files of a table a scan reads. The driver applies it to the files in memory, executors to those of a
 * checkpoint; so it is made to be sent.
 *
 * @param zone of the session: it reads timestamps in partition values that carry none
 * @param filters on rows
 * @param fileFilters on `_metadata`, see [[FileMetadata.decidesFiles]]
 * @param enoughRows when all files are not wanted, only the first ones that have so many rows
 */
private[scan] final case class FileChoice(
    table: Path,
    schema: TableSchema,
    zone: ZoneId,
    filters: Seq[Expression],
    fileFilters: Seq[Expression],
    enoughRows: Option[Long]
) {

  def among(files: FileTable, statistics: FileStatsColumns): ChosenFiles = {
    val selection = FileSelection.select(statistics, filters)
    val decides = FileMetadata.predicate(table, fileFilters)
    val ordinals =
      if (fileFilters.isEmpty) selection.files
      else selection.files.filter(i => decides(files.add(i)))
    val undecided = selection.undecided.headOption.map(files.path)
    first(new ChosenFiles(files, statistics, ordinals, undecided))
  }

  /** Those that have enough rows. A file that does not say how many it has counts for none. */
  def first(chosen: ChosenFiles): ChosenFiles = enoughRows.fold(chosen) { limit =>
    var found = 0L
    chosen.keep(chosen.ordinals.takeWhile { file =>
      val wanted = found < limit
      if (wanted) found += chosen.rows.live(file).getOrElse(0L)
      wanted
    })
  }

  def sameAs(other: FileChoice): Boolean =
    (filters eq other.filters) && (fileFilters eq other.fileFilters) &&
    enoughRows == other.enoughRows
}

/**
 * Files of a table in memory that were chosen.
 *
 * @param undecided one of them on which a filter failed that is not in the plan any more
 */
private[scan] final class ChosenFiles(
    files: FileTable,
    statistics: FileStatsColumns,
    val ordinals: Array[Int],
    val undecided: Option[String]
) {

  lazy val adds: IndexedSeq[AddFile] = ordinals.toIndexedSeq.map(files.add)

  def rows: FileRows = new FileRows(statistics, ordinals, deletedRows)

  /**
   * Those of which every row satisfies all conditions and of which it is known how many rows are left, and
   * the others.
   */
  def split(conditions: Seq[Expression]): (WholeFiles, IndexedSeq[AddFile]) = {
    val known = rows
    val whole = FileSelection.whole(statistics, ordinals, conditions)
      .filter(known.live(_).isDefined)
    (
      WholeFiles(keep(whole).adds, whole.iterator.flatMap(known.live).sum),
      keep(ordinals.diff(whole)).adds
    )
  }

  def keep(some: Array[Int]): ChosenFiles = new ChosenFiles(files, statistics, some, undecided)

  def size: TableSize =
    TableSize(ordinals.length.toLong, ordinals.iterator.map(files.sizeBytes).sum)

  /** For the way to the driver, if there are any. */
  def toBatch: Option[ChosenBatch] =
    if (ordinals.isEmpty) None else Some(ChosenBatch(files.block(ordinals), undecided))

  private def deletedRows(file: Int): Long = files.deletionVector(file) match {
    case null => 0L
    case vector => vector.cardinality
  }
}

/**
 * Files all of whose rows are meant.
 *
 * @param rows how many these are
 */
private[spark] final case class WholeFiles(adds: IndexedSeq[AddFile], rows: Long)

private[spark] object WholeFiles {
  val none: WholeFiles = WholeFiles(IndexedSeq.empty, 0L)
}

/** Chosen files, as executors send them to the driver. */
private[scan] final case class ChosenBatch(files: FileBlock, undecided: Option[String])
