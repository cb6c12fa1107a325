package io.deltaic.spark.changes

import java.util.{EnumSet, Set => JSet}

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.deltaic.SchemaShims
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.scan.{
  FollowsTable,
  NewestSnapshots,
  ReadsNewest,
  TableSchema,
  TableWithSchema
}

/**
 * What changed in a table, as a table of its own.
 *
 * @param name of the table whose changes these are
 * @param first the first version to show
 * @param last the last one, if there are that many; None for the latest when a query runs
 * @param start the table at version `first`; None when there is nothing to show
 * @param read the version whose columns the changes are shown with
 * @param newest what the scans of one query agree on
 */
private[spark] final class ChangesTable(
    spark: SparkSession,
    val log: DeltaLog,
    override val name: String,
    first: Long,
    last: Option[Long],
    start: Option[Snapshot],
    read: Snapshot,
    checksSchema: Boolean,
    newest: Option[NewestSnapshots] = None
) extends TableWithSchema
    with SupportsRead
    with ReadsNewest
    with FollowsTable
    with Changelog {

  private val tableSchema = TableSchema.of(read)

  override def columns(): Array[Column] = SchemaShims.columns(
    ChangeColumns.addedTo(log.table.toString, tableSchema.all)
  )

  override def capabilities(): JSet[TableCapability] =
    EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    val feed = start match {
      case Some(snapshot) =>
        val latest = newest.fold(log.latest())(_.of(log)).version
        val versions = VersionRange(first, last.fold(latest)(_.min(latest)))
        new ChangeFeed(log, versions, snapshot, read, checksSchema)
      case None => new ChangeFeed(log, VersionRange(first, first - 1), read, read, checksSchema)
    }
    new ChangesScanBuilder(spark, feed, tableSchema, options)
  }

  override def agreeingOn(newest: Option[NewestSnapshots]): ChangesTable =
    new ChangesTable(spark, log, name, first, last, start, read, checksSchema, newest)

  override def location: Path = log.table

  override def followsNewVersions: Boolean = last.isEmpty

  /** It reads up to the newest version, whenever it is asked, and Spark puts no other table in its place. */
  override def overtake(): Unit = ()

  override def refreshedTo(version: Long): Unit = ()

  override def replaces(older: FollowsTable): Unit = ()

  /** The changes up to a version, for a statement that reads no newer one. */
  def until(version: Long): ChangesTable =
    if (start.isEmpty) this
    else {
      val end = Some(last.fold(version)(_.min(version)))
      new ChangesTable(spark, log, name, first, end, start, read, checksSchema)
    }

  /** Writers that record changes leave no row that a rewritten file merely carries over. */
  override def containsCarryoverRows(): Boolean = false

  /** As far as Spark is to do something about it, for which rows would need an identity. */
  override def containsIntermediateChanges(): Boolean = false

  override def representsUpdateAsDeleteAndInsert(): Boolean = false

  /** An open end is the version at the time of the analysis: cached rows answer for that alone. */
  private lazy val identity: (Path, Long, Option[Long], Boolean, Long, Boolean, Boolean) =
    (log.table, first, last, start.isEmpty, read.version, newest.isDefined, checksSchema)

  override def equals(other: Any): Boolean = other match {
    case that: ChangesTable => (this eq that) || (hash == that.hash && identity == that.identity)
    case _ => false
  }

  override def hashCode(): Int = hash

  private lazy val hash: Int = identity.hashCode()

  override def toString: String = s"changes of $name"
}
