package io.deltaic.spark.changes

import java.util.{EnumSet, Set => JSet}

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.{Expressions, NamedReference}
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.deltaic.SchemaShims
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.scan.{
  CachedVersions,
  FileMetadata,
  FollowsTable,
  LocalCommit,
  LocalCommits,
  NewestSnapshots,
  ReadsNewest,
  TableSchema,
  TableWithSchema
}

/**
 * Which changes of a table are shown, and how.
 *
 * @param first the first version to show
 * @param last the last one, if there are that many; None for the latest when a query runs
 * @param start the table at version `first`; None when there is nothing to show
 * @param read the version whose columns the changes are shown with
 * @param checksSchema whether versions whose data cannot be read with these columns are an error
 * @param identifiesRows whether each row has its row id, by which Spark finds the net changes
 */
private[spark] final case class ShownChanges(
    first: Long,
    last: Option[Long],
    start: Option[Snapshot],
    read: Snapshot,
    checksSchema: Boolean,
    identifiesRows: Boolean
) {

  /** An end may be a version that the table does not have yet. */
  def followNewVersions: Boolean = last.forall(_ > read.version)

  /** The changes up to a version, and no newer one. */
  def until(version: Long): ShownChanges = copy(last = Some(last.fold(version)(_.min(version))))

  /** What two requests have in common that show the same. */
  def identity: (Long, Option[Long], Boolean, Long, Boolean, Boolean) =
    (first, last, start.isEmpty, read.version, checksSchema, identifiesRows)
}

/**
 * What changed in a table, as a table of its own.
 *
 * @param name of the table whose changes these are
 * @param newest what the scans of one query agree on
 * @param cached the versions that data cached from the changes stands for, if another copy knows them
 */
private[spark] final class ChangesTable(
    spark: SparkSession,
    val log: DeltaLog,
    override val name: String,
    shown: ShownChanges,
    newest: Option[NewestSnapshots] = None,
    cached: Option[CachedVersions] = None
) extends TableWithSchema
    with SupportsRead
    with ReadsNewest
    with FollowsTable
    with Changelog {
  import shown.{checksSchema, first, identifiesRows, last, read}

  private val tableSchema = TableSchema.of(read)

  private val cachedVersions: CachedVersions =
    cached.getOrElse(new CachedVersions(LocalCommits.at(log.table, read.version)))

  override def columns(): Array[Column] = SchemaShims.columns(
    ChangeColumns.addedTo(log.table.toString, tableSchema.all, identifiesRows)
  )

  override def capabilities(): JSet[TableCapability] =
    EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    val feed = shown.start match {
      case Some(snapshot) =>
        val latest = newest.fold(log.latest())(_.of(log)).version
        val versions = VersionRange(first, last.fold(latest)(_.min(latest)))
        new ChangeFeed(log, versions, snapshot, read, checksSchema, identifiesRows)
      case None =>
        val none = VersionRange(first, first - 1)
        new ChangeFeed(log, none, read, read, checksSchema, identifiesRows)
    }
    new ChangesScanBuilder(spark, feed, tableSchema, options)
  }

  override def agreeingOn(newest: Option[NewestSnapshots]): ChangesTable =
    new ChangesTable(spark, log, name, shown, newest, Some(cachedVersions))

  override def location: Path = log.table

  override def followsNewVersions: Boolean = shown.followNewVersions

  override def isCachedBefore(commit: LocalCommit): Boolean = cachedVersions.areBefore(commit)

  override def refreshedTo(commit: LocalCommit): Unit = cachedVersions.add(commit)

  /** It reads up to the newest version, whenever it is asked, and Spark puts no other table in its place. */
  override def replaces(older: FollowsTable): Unit = ()

  /** The changes up to a version, for a statement that reads no newer one. */
  def until(version: Long): ChangesTable =
    if (shown.start.isEmpty) this
    else new ChangesTable(spark, log, name, shown.until(version))

  /** A change data feed has no row that a rewritten file merely carries over. */
  override def containsCarryoverRows(): Boolean = identifiesRows

  /** As far as Spark is to do something about it, for which rows need an identity. */
  override def containsIntermediateChanges(): Boolean = identifiesRows

  override def representsUpdateAsDeleteAndInsert(): Boolean = identifiesRows

  override def rowId(): Array[NamedReference] = Array(rowReference(FileMetadata.RowId))

  override def rowVersion(): NamedReference = rowReference(FileMetadata.RowCommitVersion)

  private def rowReference(field: String): NamedReference =
    Expressions.column(s"${ChangeColumns.rowField.name}.$field")

  /** An open end is the version at the time of the analysis: cached rows answer for that alone. */
  private lazy val identity: (Path, Boolean, Product) =
    (log.table, newest.isDefined, shown.identity)

  override def equals(other: Any): Boolean = other match {
    case that: ChangesTable => (this eq that) || (hash == that.hash && identity == that.identity)
    case _ => false
  }

  override def hashCode(): Int = hash

  private lazy val hash: Int = identity.hashCode()

  override def toString: String = s"changes of $name"
}
