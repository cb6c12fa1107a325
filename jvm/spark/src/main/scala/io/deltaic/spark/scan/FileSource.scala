package io.deltaic.spark.scan

import java.time.ZoneId

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.{AddFile, DeltaicException}
import io.deltaic.replay.{DeltaLog, FileTable, Snapshot, TableSize}
import io.deltaic.spark.skipping.{FileRows, FileSelection, RowAggregate, SnapshotStatistics}

/** The files a scan may choose from. Two equal sources offer the same files. */
private[spark] sealed trait FileSource {
  def table: Path
  def version: Long

  /** The files of which some were chosen, if they are in memory, with what is decoded of them. */
  def known: Option[FileTable] = None

  /** Whether [[select]] leaves out the files whose partition values say that no row is wanted. */
  def heedsFilters: Boolean = true

  /**
   * The files that may hold a row for which all filters are true.
   *
   * @param fileFilters on `_metadata`, such that [[FileMetadata.decidesFiles]]
   */
  def select(filters: Seq[Expression], fileFilters: Seq[Expression]): IndexedSeq[AddFile]

  /** What the log says of the rows of those files; none where that would have to be found out first. */
  def rows(filters: Seq[Expression], fileFilters: Seq[Expression]): Option[FileRows]

  /**
   * The files of [[select]]: those of which every row satisfies the conditions, as the log proves, and the
   * others.
   *
   * @param conditions the filters and whatever else a row has to satisfy
   */
  def split(
      filters: Seq[Expression],
      fileFilters: Seq[Expression],
      conditions: Seq[Expression]
  ): (WholeFiles, IndexedSeq[AddFile])

  /** Aggregates of the rows of the files that the filters choose, as [[FileRows.aggregate]] has them. */
  def aggregate(
      filters: Seq[Expression],
      groupBy: Seq[Attribute],
      aggregates: Seq[RowAggregate]
  ): Option[Seq[Array[Any]]] =
    rows(filters, Nil).flatMap(_.aggregate(groupBy, aggregates))
}

private[spark] object FileSource {

  /** The plan no longer holds filters that partition values decide, so a failure must not pass. */
  def refuseUndecided(
      table: Path,
      version: Long,
      file: String,
      filters: Seq[Expression]
  ): Nothing = throw DeltaicException(
    "DELTAIC_UNDECIDED_PARTITION_FILTER",
    Map(
      "table" -> table.toString,
      "version" -> version.toString,
      "file" -> file,
      "filters" -> filters.map(_.sql).mkString(" AND ")
    )
  )
}

/**
 * The active files of a snapshot, pruned by partition values and statistics: where they are in memory, or else in the
 * executors.
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

  override def known: Option[FileTable] = Option.when(distributed.isEmpty)(snapshot.files)

  /** The last choice: a scan asks for its files, and about their rows, by the same filters. */
  @volatile private var chosen: Option[(FileChoice, ChosenFiles)] = None

  override def select(
      filters: Seq[Expression],
      fileFilters: Seq[Expression]
  ): IndexedSeq[AddFile] = choose(filters, fileFilters, None).adds

  override def rows(filters: Seq[Expression], fileFilters: Seq[Expression]): Option[FileRows] =
    Some(choose(filters, fileFilters, None).rows)

  override def split(
      filters: Seq[Expression],
      fileFilters: Seq[Expression],
      conditions: Seq[Expression]
  ): (WholeFiles, IndexedSeq[AddFile]) = choose(filters, fileFilters, None).split(conditions)

  override def aggregate(
      filters: Seq[Expression],
      groupBy: Seq[Attribute],
      aggregates: Seq[RowAggregate]
  ): Option[Seq[Array[Any]]] =
    distributed.fold(super.aggregate(filters, groupBy, aggregates)) {
      _.aggregate(choiceOf(filters, Nil, None), groupBy, aggregates)
    }

  /** All files, counted. */
  def size: TableSize = {
    val everything = FileChoice(table, schema, zone, Nil, Nil, None)
    distributed.fold(inMemory(everything).size)(_.size(everything))
  }

  private[scan] def choose(
      filters: Seq[Expression],
      fileFilters: Seq[Expression],
      enoughRows: Option[Long]
  ): ChosenFiles = {
    val asked = FileChoice(table, schema, zone, filters, fileFilters, enoughRows)
    chosen match {
      case Some((same, files)) if same.sameAs(asked) => files
      case _ =>
        val choice = choiceOf(filters, fileFilters, enoughRows)
        val files = distributed.fold(inMemory(choice))(_.choose(choice))
        files.undecided.foreach(FileSource.refuseUndecided(table, version, _, choice.filters))
        chosen = Some((asked, files))
        files
    }
  }

  private def choiceOf(
      filters: Seq[Expression],
      fileFilters: Seq[Expression],
      enoughRows: Option[Long]
  ): FileChoice = FileChoice(table, schema, zone, within ++ filters, fileFilters, enoughRows)

  private def inMemory(choice: FileChoice): ChosenFiles =
    choice.among(snapshot.files, SnapshotStatistics.of(snapshot.files, schema.skipping, zone))

  override def equals(other: Any): Boolean = other match {
    case that: SnapshotFiles => (that.snapshot eq snapshot) && (that.within eq within)
    case _ => false
  }
  override def hashCode(): Int = System.identityHashCode(snapshot)
}

private[spark] object SnapshotFiles {

  /**
   * @param options of the read, which may tell how to reach the file system
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

/** Files that are known only as such: of their rows the log is not asked. */
private[spark] sealed trait NamedFiles extends FileSource {
  override def rows(filters: Seq[Expression], fileFilters: Seq[Expression]): Option[FileRows] =
    None

  override def split(
      filters: Seq[Expression],
      fileFilters: Seq[Expression],
      conditions: Seq[Expression]
  ): (WholeFiles, IndexedSeq[AddFile]) = (WholeFiles.none, select(filters, fileFilters))
}

/** Exactly these files, with the deletion vectors they carry here: what a rewrite reads. */
private[spark] sealed case class ListedFiles(
    table: Path,
    version: Long,
    files: IndexedSeq[AddFile]
) extends NamedFiles {
  override def heedsFilters: Boolean = false

  /** Logical files are told apart by path and deletion vector; all that they are may be much to compare. */
  override def equals(other: Any): Boolean = other match {
    case that: ListedFiles =>
      (this eq that) || (version == that.version && table == that.table &&
      ((files eq that.files) || files.corresponds(that.files)(ListedFiles.areSame)))
    case _ => false
  }

  override def hashCode(): Int = (table, version, files.size).hashCode()

  override def select(
      filters: Seq[Expression],
      fileFilters: Seq[Expression]
  ): IndexedSeq[AddFile] = FileMetadata.select(table, files, fileFilters)
}

private[spark] object ListedFiles {
  private def areSame(one: AddFile, other: AddFile): Boolean =
    (one eq other) || (one.path == other.path && one.deletionVector == other.deletionVector)
}

/**
 * Of listed files, those that may hold a row that the filters select.
 *
 * @param zone of the session, which reads timestamps in partition values
 */
private[spark] final class PrunedFiles(
    override val table: Path,
    override val version: Long,
    listed: IndexedSeq[AddFile],
    schema: TableSchema,
    zone: ZoneId
) extends NamedFiles {

  override def select(
      filters: Seq[Expression],
      fileFilters: Seq[Expression]
  ): IndexedSeq[AddFile] = {
    val statistics = SnapshotStatistics.ofFiles(listed, schema.skipping, zone)
    val selection = FileSelection.select(statistics, filters)
    selection.undecided.headOption.foreach { i =>
      FileSource.refuseUndecided(table, version, listed(i).path, filters)
    }
    FileMetadata.select(table, selection.files.toIndexedSeq.map(listed), fileFilters)
  }
}

/** Some of the files of a source. */
private[scan] final class SelectedFiles(of: FileSource, some: IndexedSeq[AddFile])
    extends ListedFiles(of.table, of.version, some) {
  override def known: Option[FileTable] = of.known
}

/**
 * The first files of a selection that together have at least `limit` rows. Sound only for a scan of
 * which every row is wanted, that is, whose filters are all decided by partition values.
 */
private[spark] final case class LimitedFiles(all: SnapshotFiles, limit: Long) extends FileSource {
  override def table: Path = all.table
  override def version: Long = all.version
  override def known: Option[FileTable] = all.known

  override def select(
      filters: Seq[Expression],
      fileFilters: Seq[Expression]
  ): IndexedSeq[AddFile] = all.choose(filters, fileFilters, Some(limit)).adds

  override def rows(filters: Seq[Expression], fileFilters: Seq[Expression]): Option[FileRows] =
    Some(all.choose(filters, fileFilters, Some(limit)).rows)

  override def split(
      filters: Seq[Expression],
      fileFilters: Seq[Expression],
      conditions: Seq[Expression]
  ): (WholeFiles, IndexedSeq[AddFile]) = (WholeFiles.none, select(filters, fileFilters))
}
