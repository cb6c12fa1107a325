package io.deltaic.spark.scan.files

import java.time.ZoneId

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.Expression

import io.deltaic.protocol.AddFile
import io.deltaic.replay.{FileBlock, FileTable, TableSize}
import io.deltaic.spark.metrics.SkippedFiles
import io.deltaic.spark.schema.{FileMetadata, TableSchema}
import io.deltaic.spark.skipping.{FileSelection, FileStatsAggregator, FileStatsColumns}

/**
 * Selects the files of a table that a scan reads. The driver applies it to files in memory,
 * executors apply it to those of a checkpoint; so it is serializable.
 *
 * @param zone of the session: used to parse timestamps without a zone in partition values
 * @param enoughRows if set, only the first files that together have this many rows are read
 */
private[scan] final case class FilePruning(
    table: Path,
    schema: TableSchema,
    zone: ZoneId,
    filters: ScanFilters,
    enoughRows: Option[Long]
) {

  def among(files: FileTable, statistics: FileStatsColumns): PrunedFiles = {
    val selection = FileSelection.select(statistics, filters.ofRows)
    val matchesFile = FileMetadata.predicate(table, filters.ofFiles)
    val ordinals =
      if (filters.ofFiles.isEmpty) selection.files
      else selection.files.filter(i => matchesFile(files.add(i)))
    val unevaluated = selection.unevaluated.headOption.map(files.path)
    val ofPartitions = Option.when(selection.skippedByPartitions > 0)(selection.ofPartitions)
    val skipped = () =>
      if (ordinals.length == files.size) SkippedFiles.none
      else {
        val all = TableSize(files.size.toLong, files.totalSizeBytes)
        val left = ofPartitions.fold(all)(PrunedFiles.sizeOf(files, _))
        SkippedFiles(all - left, left - PrunedFiles.sizeOf(files, ordinals))
      }
    first(new PrunedFiles(files, statistics, ordinals, unevaluated, skipped))
  }

  /** The first files with enough rows. A file without a record count counts as zero rows. */
  def first(chosen: PrunedFiles): PrunedFiles = enoughRows.fold(chosen) { limit =>
    var found = 0L
    chosen.keep(chosen.ordinals.takeWhile { file =>
      val wanted = found < limit
      if (wanted) found += chosen.rows.live(file).getOrElse(0L)
      wanted
    })
  }

  def sameAs(other: FilePruning): Boolean =
    filters.areSame(other.filters) && enoughRows == other.enoughRows
}

/**
 * The selected files of a table in memory.
 *
 * @param unevaluated one of the files on which a filter failed that is no longer in the plan
 * @param countSkipped counts the files of the table that are not selected
 */
private[scan] final class PrunedFiles(
    files: FileTable,
    statistics: FileStatsColumns,
    val ordinals: Array[Int],
    val unevaluated: Option[String],
    countSkipped: () => SkippedFiles
) {

  /** The files of the table that are not selected. */
  private lazy val skipped: SkippedFiles = countSkipped()

  def selected: Selected = Selected(adds, () => skipped)

  lazy val adds: IndexedSeq[AddFile] = ordinals.toIndexedSeq.map(files.add)

  def rows: FileStatsAggregator = new FileStatsAggregator(statistics, ordinals, deletedRows)

  /**
   * The files of which every row satisfies all conditions and whose number of live rows is
   * available, and the other files.
   */
  def split(conditions: Seq[Expression]): (FullyDeletedFiles, IndexedSeq[AddFile]) = {
    val aggregator = rows
    val fullyDeleted = FileSelection.fullySelected(statistics, ordinals, conditions)
      .filter(aggregator.live(_).isDefined)
    (
      FullyDeletedFiles(
        keep(fullyDeleted).adds,
        fullyDeleted.iterator.flatMap(aggregator.live).sum
      ),
      keep(ordinals.diff(fullyDeleted)).adds
    )
  }

  def keep(some: Array[Int]): PrunedFiles =
    new PrunedFiles(files, statistics, some, unevaluated, countSkipped)

  def size: TableSize = PrunedFiles.sizeOf(files, ordinals)

  /** The files in serializable form. */
  def toBatch: PrunedBatch =
    PrunedBatch(Option.when(ordinals.nonEmpty)(files.block(ordinals)), unevaluated, skipped)

  private def deletedRows(file: Int): Long = files.deletionVector(file) match {
    case null => 0L
    case vector => vector.cardinality
  }
}

/**
 * Files of which all rows match.
 *
 * @param rows the number of these rows
 */
private[spark] final case class FullyDeletedFiles(adds: IndexedSeq[AddFile], rows: Long)

private[spark] object FullyDeletedFiles {
  val none: FullyDeletedFiles = FullyDeletedFiles(IndexedSeq.empty, 0L)
}

private object PrunedFiles {

  def sizeOf(files: FileTable, ordinals: Array[Int]): TableSize = {
    var bytes = 0L
    var i = 0
    while (i < ordinals.length) {
      bytes += files.sizeBytes(ordinals(i))
      i += 1
    }
    TableSize(ordinals.length.toLong, bytes)
  }
}

/**
 * Selected files, as executors send them to the driver.
 *
 * @param files none if no file is selected
 */
private[scan] final case class PrunedBatch(
    files: Option[FileBlock],
    unevaluated: Option[String],
    skipped: SkippedFiles
)
