package io.deltaic.spark.scan.files

import java.time.ZoneId

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.{AddFile, DeltaicException}
import io.deltaic.replay.{DeltaLog, FileTable, Snapshot, TableSize}
import io.deltaic.spark.metrics.SkippedFiles
import io.deltaic.spark.schema.{FileMetadata, TableSchema}
import io.deltaic.spark.skipping.{
  FileSelection,
  FileStatsAggregator,
  RowAggregate,
  SnapshotStatistics
}

/** The candidate files of a scan. Equal sources have the same files. */
private[spark] sealed trait FileSource {
  def table: Path
  def version: Long

  /** All candidate files with their decoded statistics, if they are in memory. */
  def filesInMemory: Option[FileTable] = None

  /** Whether [[select]] skips the files whose partition values do not match the filters. */
  def honorsFilters: Boolean = true

  /** The files that may contain a row for which all filters are true. */
  final def select(filters: ScanFilters): IndexedSeq[AddFile] = selected(filters).files

  /** The same, with the other files of the table. */
  def selected(filters: ScanFilters): Selected

  /** The statistics in the log of those files; none if they would have to be computed first. */
  def rows(filters: ScanFilters): Option[FileStatsAggregator]

  /**
   * The files of [[select]]: those of which every row satisfies the conditions, as the log proves, and the other files.
   *
   * @param conditions the filters and any further conditions on rows
   */
  def split(
      filters: ScanFilters,
      conditions: Seq[Expression]
  ): (FullyDeletedFiles, IndexedSeq[AddFile])

  /** Aggregates over the rows of the selected files, as [[FileStatsAggregator.aggregate]] returns them. */
  def aggregate(
      filters: Seq[Expression],
      groupBy: Seq[Attribute],
      aggregates: Seq[RowAggregate]
  ): Option[Seq[Array[Any]]] =
    rows(ScanFilters(filters)).flatMap(_.aggregate(groupBy, aggregates))
}

/**
 * The files that a scan selects.
 *
 * @param skipped counts the other files of the table, as far as they are known
 */
private[spark] final case class Selected(
    files: IndexedSeq[AddFile],
    skipped: () => SkippedFiles = () => SkippedFiles.none
)

private[spark] object FileSource {

  /** Filters on partition values are no longer in the plan, so a failed evaluation must be an error. */
  def failUnevaluated(
      table: Path,
      version: Long,
      file: String,
      filters: Seq[Expression]
  ): Nothing = throw DeltaicException(
    "DELTAIC_UNREADABLE_PARTITION_VALUE",
    Map(
      "table" -> table.toString,
      "version" -> version.toString,
      "file" -> file,
      "filters" -> filters.map(_.sql).mkString(" AND ")
    )
  )
}

/**
 * The active files of a snapshot, pruned by partition values and statistics: on the driver if they
 * are in memory, otherwise in the executors.
 */
private[spark] final class SnapshotFiles private (
    val snapshot: Snapshot,
    schema: TableSchema,
    zone: ZoneId,
    distributed: Option[DistributedFiles],
    private val within: Seq[Expression]
) extends FileSource {
  override def table: Path = snapshot.table
  override def version: Long = snapshot.version

  override def filesInMemory: Option[FileTable] = Option.when(distributed.isEmpty)(snapshot.files)

  /** The last selection: a scan requests its files and their statistics with the same filters. */
  @volatile private var chosen: Option[(FilePruning, PrunedFiles)] = None

  override def selected(filters: ScanFilters): Selected = choose(filters, None).selected

  override def rows(filters: ScanFilters): Option[FileStatsAggregator] =
    Some(choose(filters, None).rows)

  override def split(
      filters: ScanFilters,
      conditions: Seq[Expression]
  ): (FullyDeletedFiles, IndexedSeq[AddFile]) = choose(filters, None).split(conditions)

  override def aggregate(
      filters: Seq[Expression],
      groupBy: Seq[Attribute],
      aggregates: Seq[RowAggregate]
  ): Option[Seq[Array[Any]]] =
    distributed.fold(super.aggregate(filters, groupBy, aggregates)) {
      _.aggregate(pruningOf(ScanFilters(filters), None), groupBy, aggregates)
    }

  /** The number and total size of all files. */
  def size: TableSize = {
    val everything = FilePruning(table, schema, zone, ScanFilters.none, None)
    distributed.fold(inMemory(everything).size)(_.size(everything))
  }

  private[scan] def choose(filters: ScanFilters, enoughRows: Option[Long]): PrunedFiles = {
    val requested = FilePruning(table, schema, zone, filters, enoughRows)
    chosen match {
      case Some((same, files)) if same.sameAs(requested) => files
      case _ =>
        val pruning = pruningOf(filters, enoughRows)
        val files = distributed.fold(inMemory(pruning))(_.choose(pruning))
        files.unevaluated.foreach {
          FileSource.failUnevaluated(table, version, _, pruning.filters.ofRows)
        }
        chosen = Some((requested, files))
        files
    }
  }

  private def pruningOf(filters: ScanFilters, enoughRows: Option[Long]): FilePruning = {
    val limited = filters.copy(ofRows = within ++ filters.ofRows)
    FilePruning(table, schema, zone, limited, enoughRows)
  }

  private def inMemory(pruning: FilePruning): PrunedFiles =
    pruning.among(snapshot.files, SnapshotStatistics.of(snapshot.files, schema.skipping, zone))

  override def equals(other: Any): Boolean = other match {
    case that: SnapshotFiles => (that.snapshot eq snapshot) && (that.within eq within)
    case _ => false
  }
  override def hashCode(): Int = System.identityHashCode(snapshot)
}

private[spark] object SnapshotFiles {

  /**
   * @param options of the read, which may configure the file system
   * @param within conditions on partition columns that all files of the source meet
   */
  def apply(
      spark: SparkSession,
      log: DeltaLog,
      snapshot: Snapshot,
      schema: TableSchema,
      options: Map[String, String] = Map.empty,
      within: Seq[Expression] = Nil
  ): SnapshotFiles = new SnapshotFiles(
    snapshot,
    schema,
    FileSplits.sessionZone(spark),
    Option.when(snapshot.isDistributed)(new DistributedFiles(spark, log, snapshot, options)),
    within
  )
}

/** Files given by a list: their statistics are not used for aggregates. */
private[spark] sealed trait NamedFiles extends FileSource {
  override def rows(filters: ScanFilters): Option[FileStatsAggregator] = None

  override def split(
      filters: ScanFilters,
      conditions: Seq[Expression]
  ): (FullyDeletedFiles, IndexedSeq[AddFile]) = (FullyDeletedFiles.none, select(filters))
}

/** Exactly these files, with the deletion vectors in these actions: the input of a rewrite. */
private[spark] sealed case class ListedFiles(
    table: Path,
    version: Long,
    files: IndexedSeq[AddFile]
) extends NamedFiles {
  override def honorsFilters: Boolean = false

  /** Logical files are identified by path and deletion vector; comparing all fields may be expensive. */
  override def equals(other: Any): Boolean = other match {
    case that: ListedFiles =>
      (this eq that) || (version == that.version && table == that.table &&
      ((files eq that.files) || files.corresponds(that.files)(ListedFiles.areSame)))
    case _ => false
  }

  override def hashCode(): Int = (table, version, files.size).hashCode()

  override def selected(filters: ScanFilters): Selected =
    Selected(FileMetadata.select(table, files, filters.ofFiles))
}

private[spark] object ListedFiles {
  private def areSame(one: AddFile, other: AddFile): Boolean =
    (one eq other) || (one.path == other.path && one.deletionVector == other.deletionVector)
}

/**
 * The listed files that may contain a row that matches the filters.
 *
 * @param zone of the session, used to parse timestamps in partition values
 */
private[spark] final class FilterableFiles(
    override val table: Path,
    override val version: Long,
    listed: IndexedSeq[AddFile],
    schema: TableSchema,
    zone: ZoneId
) extends NamedFiles {

  override def selected(filters: ScanFilters): Selected = {
    val statistics = SnapshotStatistics.ofFiles(listed, schema.skipping, zone)
    val selection = FileSelection.select(statistics, filters.ofRows)
    selection.unevaluated.headOption.foreach { i =>
      FileSource.failUnevaluated(table, version, listed(i).path, filters.ofRows)
    }
    Selected(FileMetadata.select(table, selection.files.toIndexedSeq.map(listed), filters.ofFiles))
  }
}

/**
 * Some of the files of a source.
 *
 * @param skipped counts the other files of the table
 */
private[scan] final class SelectedFiles(
    of: FileSource,
    some: IndexedSeq[AddFile],
    skipped: () => SkippedFiles
) extends ListedFiles(of.table, of.version, some) {
  override def filesInMemory: Option[FileTable] = of.filesInMemory

  override def selected(filters: ScanFilters): Selected =
    super.selected(filters).copy(skipped = skipped)
}

/**
 * The first files of a selection that together have at least `limit` rows. Sound only for a scan
 * that returns every row, that is, whose filters are all fully evaluated on partition values.
 */
private[spark] final case class LimitedFiles(all: SnapshotFiles, limit: Long) extends FileSource {
  override def table: Path = all.table
  override def version: Long = all.version
  override def filesInMemory: Option[FileTable] = all.filesInMemory

  override def selected(filters: ScanFilters): Selected =
    all.choose(filters, Some(limit)).selected

  override def rows(filters: ScanFilters): Option[FileStatsAggregator] =
    Some(all.choose(filters, Some(limit)).rows)

  override def split(
      filters: ScanFilters,
      conditions: Seq[Expression]
  ): (FullyDeletedFiles, IndexedSeq[AddFile]) = (FullyDeletedFiles.none, select(filters))
}
