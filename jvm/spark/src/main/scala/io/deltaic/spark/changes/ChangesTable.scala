package io.deltaic.spark.changes

import java.util.{EnumSet, Set => JSet}

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.{Expressions, NamedReference}
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.scan.files.{
  CachedVersions,
  FollowsTable,
  LocalCommit,
  LocalCommits,
  QuerySnapshots,
  ReadsNewest
}
import io.deltaic.spark.schema.{FileMetadata, TableSchema}
import io.deltaic.spark.util.TableWithSchema

/**
 * Which changes of a table a query reads, and how.
 *
 * @param first the first version to read
 * @param last the last version, if it exists; None for the latest one when a query runs
 * @param start the table at version `first`; None if there are no changes
 * @param read the version whose columns the changes are shown with
 * @param checksSchema whether a version whose data cannot be read with these columns is an error
 * @param identifiesRows whether each row has its row ID, by which Spark computes net changes
 */
private[spark] final case class ChangesRequest(
    first: Long,
    last: Option[Long],
    start: Option[Snapshot],
    read: Snapshot,
    checksSchema: Boolean,
    identifiesRows: Boolean
) {

  /** The end may be a version that does not exist yet. */
  def followNewVersions: Boolean = last.forall(_ > read.version)

  /** The changes up to a version, and no newer one. */
  def until(version: Long): ChangesRequest = copy(last = Some(last.fold(version)(_.min(version))))

  /** Equal for two requests of the same changes. */
  def identity: (Long, Option[Long], Boolean, Long, Boolean, Boolean) =
    (first, last, start.isEmpty, read.version, checksSchema, identifiesRows)
}

private[spark] object ChangesRequest {

  /** No changes, with the columns of a version. */
  def none(read: Snapshot): ChangesRequest =
    ChangesRequest(0L, None, None, read, checksSchema = true, identifiesRows = false)
}

/**
 * The changes of a table as a table of its own.
 *
 * @param name of the table whose changes these are
 * @param streaming the same changes as the source of a stream, given the options of the read and the checkpoint directory
 * @param failure why the range cannot be read by a batch query; a stream has a range of its own
 * @param newest the snapshots that all scans of one query use
 * @param cached the versions of data cached from the changes, if another copy of the table has them
 */
private[spark] final class ChangesTable(
    spark: SparkSession,
    val log: DeltaLog,
    override val name: String,
    shown: ChangesRequest,
    streaming: Option[ChangesTable.Streaming] = None,
    failure: Option[Throwable] = None,
    newest: Option[QuerySnapshots] = None,
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

  override def columns(): Array[Column] = SchemaInternals.columns(
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
    def stream(checkpoint: String) = streaming.map(_(this, options, checkpoint))
    new ChangesScanBuilder(spark, feed, tableSchema, options, ChangesUse(stream, failure))
  }

  override def pinnedTo(newest: Option[QuerySnapshots]): ChangesTable =
    new ChangesTable(spark, log, name, shown, streaming, failure, newest, Some(cachedVersions))

  override def location: Path = log.table

  override def followsNewVersions: Boolean = shown.followNewVersions

  override def isCachedBefore(commit: LocalCommit): Boolean = cachedVersions.areBefore(commit)

  override def refreshedTo(commit: LocalCommit): Unit = cachedVersions.add(commit)

  /** A no-op: it always reads up to the newest version, and Spark does not replace it by another table. */
  override def replaces(older: FollowsTable): Unit = ()

  /** The changes up to a version, for a statement that reads no newer one. */
  def until(version: Long): ChangesTable =
    if (shown.start.isEmpty) this
    else new ChangesTable(spark, log, name, shown.until(version))

  /** A change data feed has no rows that a rewritten file only copies. */
  override def containsCarryoverRows(): Boolean = identifiesRows

  /** Spark can handle them only if rows have an identity. */
  override def containsIntermediateChanges(): Boolean = identifiesRows

  override def representsUpdateAsDeleteAndInsert(): Boolean = identifiesRows

  override def rowId(): Array[NamedReference] = Array(rowReference(FileMetadata.RowId))

  override def rowVersion(): NamedReference = rowReference(FileMetadata.RowCommitVersion)

  private def rowReference(field: String): NamedReference =
    Expressions.column(s"${ChangeColumns.rowField.name}.$field")

  /** An open end is replaced by the version at analysis: cached rows are valid only for that version. */
  private lazy val identity: (Path, Boolean, Product) =
    (log.table, newest.isDefined, (shown.identity, failure))

  override def equals(other: Any): Boolean = other match {
    case that: ChangesTable => (this eq that) || (hash == that.hash && identity == that.identity)
    case _ => false
  }

  override def hashCode(): Int = hash

  private lazy val hash: Int = identity.hashCode()

  override def toString: String = s"changes of $name"
}

private[spark] object ChangesTable {
  type Streaming = (ChangesTable, CaseInsensitiveStringMap, String) => MicroBatchStream
}
