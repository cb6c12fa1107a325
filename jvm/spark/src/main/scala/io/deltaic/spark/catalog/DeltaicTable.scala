package io.deltaic.spark.catalog

import java.util.{EnumSet, Map => JMap, Set => JSet}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.TableCapability._
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read.ScanBuilder
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.changes.ChangesTable
import io.deltaic.spark.commit.OperationInfo
import io.deltaic.spark.rowlevel.{MergeDetails, RowLevelChange, RowReplacement}
import io.deltaic.spark.scan.TableScanBuilder
import io.deltaic.spark.scan.files.{
  CachedVersions,
  FollowsTable,
  LoadedSnapshot,
  LocalCommit,
  LocalCommits,
  QuerySnapshots,
  ReadsNewest,
  SnapshotFiles
}
import io.deltaic.spark.schema.{
  AnalyzedColumns,
  IdentityColumn,
  ReadCompatibility,
  ScanColumns,
  SchemaChecks,
  TableSchema
}
import io.deltaic.spark.util.{TableWithSchema, UnsupportedOperation}
import io.deltaic.spark.write.{ComputesColumns, WriteIntent, WriteTarget, WriteTargets}

/** How a table was loaded into a plan, which determines the version that its scans read. */
private[spark] sealed trait TableOrigin

private[spark] object TableOrigin {

  /** Through the catalog: Spark itself reloads the table for each query, by its version. */
  case object Catalog extends TableOrigin

  /** By path, without a catalog: each query reads the newest version. */
  case object Path extends TableOrigin

  /** At a version that the user specified, which is fixed. */
  case object TimeTravel extends TableOrigin

  /** At the version that its statement is pinned to. */
  case object Statement extends TableOrigin
}

/** @param newest the snapshots that all scans of the query use */
private[spark] final case class QueriedTable(table: DeltaicTable, newest: QuerySnapshots)

/**
 * A table as Spark's planner sees it. It has no `id`: with one, Spark would refuse a DataFrame of a table name after
 * the table has been replaced.
 *
 * Spark does not resolve statements that write it or change its rows until a rule replaces it by its [[TargetTable]]
 * (docs/decisions/0032).
 *
 * @param entry its entry in the session catalog, if it was loaded by name
 * @param query the query that it is a part of; none for the table of a DataFrame that is not executed, or for a target
 * @param within the partition to which reads are limited, if a path names one
 */
private[spark] class DeltaicTable(
    val spark: SparkSession,
    val log: DeltaLog,
    val snapshot: Snapshot,
    origin: TableOrigin,
    displayName: Option[String] = None,
    entry: Option[CatalogTable] = None,
    query: Option[QueriedTable] = None,
    within: Option[TablePartition] = None
) extends TableWithSchema
    with SupportsRead
    with SupportsWrite
    with SupportsMetadataColumns
    with FollowsTable
    with ReadsNewest
    with ComputesColumns
    with WriteTargets {

  private val loaded: LoadedSnapshot = query.fold(
    LoadedSnapshot(snapshot, LocalCommits.at(log.table, snapshot.version))
  )(_.table.loaded)

  @volatile private var ownCachedVersions: CachedVersions = new CachedVersions(loaded.commit)

  /** The versions for which data cached from this table is valid; see [[equals]]. */
  private def cachedVersions: CachedVersions =
    query.fold(ownCachedVersions)(_.table.ownCachedVersions)

  val tableSchema: TableSchema = query.fold(TableSchema.of(snapshot))(_.table.tableSchema)

  override def generatedColumns: Map[String, String] = tableSchema.generated

  override def identityColumns: Seq[IdentityColumn] =
    tableSchema.stored.filter(f => tableSchema.identity(f.name)).flatMap(IdentityColumn.of)

  override def name(): String = displayName.getOrElse(s"delta.`${log.table}`")

  override def version(): String = if (isRefreshed) snapshot.version.toString else null

  override def columns(): Array[Column] = SchemaInternals.columns(tableSchema.all)

  private lazy val description = new TableDescription(snapshot, tableSchema, entry)

  override def partitioning(): Array[Transform] = description.partitioning

  override def properties(): JMap[String, String] = description.properties.asJava

  /** A statement that creates an empty table like this one; see [[TableDescription.createStatement]]. */
  def createStatement(name: String, isPath: Boolean): CreateStatement =
    description.createStatement(name, isPath)

  /**
   * A table loaded by path does not support Spark's V2 writes: `save(path)` must reach
   * [[io.deltaic.spark.DeltaicDataSource]], which alone can create the table.
   */
  override def capabilities(): JSet[TableCapability] = origin match {
    case TableOrigin.Catalog =>
      EnumSet.of(
        BATCH_READ,
        MICRO_BATCH_READ,
        BATCH_WRITE,
        STREAMING_WRITE, // so that our own rule refuses it, and names the alternative
        TRUNCATE,
        OVERWRITE_BY_FILTER,
        OVERWRITE_DYNAMIC,
        ACCEPT_ANY_SCHEMA
      )
    case _ => EnumSet.of(BATCH_READ, MICRO_BATCH_READ)
  }

  override def metadataColumns(): Array[MetadataColumn] =
    ScanColumns.metadataColumns(tableSchema.rowTracking)

  /** If the table has a column `_metadata`, ours remains accessible by `DataFrame.metadataColumn`. */
  override def canRenameConflictingMetadataColumns: Boolean = true

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    scanBuilder(options, isChanged = false)

  /** @param isChanged whether the statement changes the table */
  def scanBuilder(options: CaseInsensitiveStringMap, isChanged: Boolean): ScanBuilder = {
    TableServices.current.requireSession(spark, log.table.toString)
    UnsupportedReadOptions.refuse(log, options)
    if (isRefreshed && !AnalyzedColumns.hold(options, tableSchema)) throw schemaChanged(snapshot)
    val current = snapshotToRead()
    val readOptions = AnalyzedColumns.without(options)
    val settings = readOptions.asCaseSensitiveMap.asScala.toMap
    val schema = schemaOf(current)
    val conditions = within.fold(Seq.empty[Expression])(_.conditions)
    val files = SnapshotFiles(spark, log, current, schema, settings, conditions)
    val streams = Some(streaming(readOptions, _))
    new TableScanBuilder(
      spark,
      files,
      schema,
      readOptions,
      streams = streams,
      isChanged = isChanged
    )
  }

  private def streaming(options: CaseInsensitiveStringMap, checkpoint: String): MicroBatchStream = {
    requireWhole()
    if (origin == TableOrigin.TimeTravel)
      throw UnsupportedOperation(
        log.table.toString,
        s"a stream of the older version ${snapshot.version}"
      )
    TableServices.current.stream(spark, this, options, checkpoint)
  }

  /**
   * The change data feed in the range of these options (see [[ChangeFeedOptions]]).
   *
   * @param mayBeEmpty whether a range that ends right before it starts is valid
   * @param identifiesRows whether each row has its row ID: the changes are then read from data files
   */
  def changes(
      options: CaseInsensitiveStringMap,
      mayBeEmpty: Boolean = false,
      identifiesRows: Boolean = false
  ): ChangesTable = {
    requireWhole()
    new ChangeFeedRequest(
      spark,
      log,
      name(),
      snapshot,
      timeTravelled = origin == TableOrigin.TimeTravel,
      options,
      mayBeEmpty,
      identifiesRows
    ).table
  }

  /** The same table as the target of a statement, which Spark then resolves. */
  def asTarget: TargetTable = {
    requireWhole()
    new TargetTable(spark, log, snapshot, origin, displayName, entry)
  }

  def isTarget: Boolean = false

  /** Spark has not resolved the output of a write to this table: see [[TargetTable]]. */
  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    throw extensionMissing("a write")

  override def writeTarget: WriteTarget = {
    requireWhole()
    WriteTarget(
      spark,
      log,
      Some(snapshotToChange()),
      tableSchema.partitionColumns,
      WriteIntent(OperationInfo("WRITE"), mode = "append"),
      RowReplacement
    )
  }

  /** Only plain reads are allowed on a partition of the table. */
  private def requireWhole(): Unit = within.foreach(part => throw part.refusal)

  override def forWriting(target: WriteTarget): WriteOnlyTable =
    new WriteOnlyTable(
      target,
      target.intent.evolved.getOrElse(tableSchema.all),
      generatedColumns,
      identityColumns,
      displayName
    )

  /** A DELETE, UPDATE or MERGE of this table. */
  def changeOf(
      command: RowLevelOperation.Command,
      merge: Option[MergeDetails] = None
  ): RowLevelChange = {
    requireWhole()
    if (origin == TableOrigin.TimeTravel)
      throw UnsupportedOperation(
        log.table.toString,
        s"$command of the older version ${snapshot.version}"
      )
    requireExtension(command.toString)
    val columns = merge.flatMap(_.evolved).getOrElse(tableSchema.all)
    SchemaChecks.requireChangeableNames(log.table.toString, columns.fieldNames.toSeq, command)
    val read = snapshotToChange()
    // The statement generates identity values from the high-water marks at its analysis.
    if (read.version != snapshot.version && TableSchema.of(read).stored != tableSchema.stored)
      throw schemaChanged(read)
    new RowLevelChange(spark, log, read, command, merge = merge)
  }

  def requireExtension(operation: String): Unit =
    if (!TableServices.current.hasExtension(spark)) throw extensionMissing(operation)

  private def extensionMissing(operation: String): DeltaicThrowable = DeltaicException(
    "DELTAIC_EXTENSION_MISSING",
    Map("table" -> log.table.toString, "operation" -> operation)
  )

  /** The rules of the extension compute columns; without them, nulls would be written instead. */
  def requireCanCompute(): Unit =
    if (computesColumns) requireExtension("a write that computes columns")

  /** The pinned version, or the query's snapshot if it still has the columns with which this plan was analyzed. */
  private def snapshotToRead(): Snapshot = origin match {
    case TableOrigin.Catalog => query.fold(snapshot)(q => withSameColumns(q.newest.ofLoaded(log)))
    case TableOrigin.TimeTravel | TableOrigin.Statement => snapshot
    case TableOrigin.Path =>
      withSameColumns(query.fold(log.latest())(_.newest.of(log)))
  }

  /** A statement changes the version that Spark loaded for it, regardless of the snapshot pinned for a query. */
  private def snapshotToChange(): Snapshot =
    if (origin == TableOrigin.Catalog) snapshot else snapshotToRead()

  /** Requires that a newer version still has the columns of this one. */
  private def withSameColumns(latest: Snapshot): Snapshot =
    if (hasColumns(latest)) latest else throw schemaChanged(latest)

  private def schemaChanged(latest: Snapshot): DeltaicThrowable = DeltaicException(
    "DELTAIC_SCHEMA_CHANGED",
    Map("table" -> log.table.toString, "version" -> latest.version.toString)
  )

  /** Whether a version has all columns of this one. Its other columns are not in plans for this one. */
  private def hasColumns(version: Snapshot): Boolean =
    hasSameDefinition(version) ||
    ReadCompatibility.holds(version.metadata, snapshot.metadata, dataIsOlder = false)

  private def schemaOf(version: Snapshot): TableSchema =
    if (hasSameDefinition(version)) tableSchema else TableSchema.of(version)

  /** Whether it is the same table with the same columns, at any version. */
  def hasSameColumns(other: DeltaicTable): Boolean =
    log.table == other.log.table && snapshot.metadata.id == other.snapshot.metadata.id &&
    tableSchema.all == other.tableSchema.all &&
    AnalyzedColumns.of(tableSchema) == AnalyzedColumns.of(other.tableSchema)

  private def hasSameDefinition(version: Snapshot): Boolean = (version eq snapshot) ||
    version.metadata == snapshot.metadata && version.protocol == snapshot.protocol

  /**
   * The same table pinned to the version of a statement, so that all its reads use the version that its
   * write is based on. A table whose columns have changed since is not pinned, and fails when it is read.
   */
  def pinnedTo(version: Snapshot): DeltaicTable =
    if (origin == TableOrigin.Path && hasColumns(version)) atStatementVersion(version) else this

  /**
   * The same for a row-level change of this table: its conditions and its source also read the table at
   * the version that is changed.
   */
  def pinnedToChanged(version: Snapshot): DeltaicTable = origin match {
    case TableOrigin.TimeTravel => this
    case _ if hasColumns(version) => atStatementVersion(version)
    case _ => throw schemaChanged(version)
  }

  private def atStatementVersion(version: Snapshot): DeltaicTable =
    new DeltaicTable(spark, log, version, TableOrigin.Statement, displayName, within = within)

  /** The same, pinned to the newest version as all reads of the statement see it. */
  def pinnedTo(newest: QuerySnapshots): DeltaicTable =
    if (origin == TableOrigin.Path) pinnedTo(newest.of(log)) else this

  override def pinnedTo(newest: Option[QuerySnapshots]): DeltaicTable =
    if (followsNewVersions && !isTarget) {
      val table = query.fold(this)(_.table)
      newest.fold(table) { snapshots =>
        if (origin == TableOrigin.Catalog) snapshots.load(log, loaded)
        val queried = Some(QueriedTable(table, snapshots))
        new DeltaicTable(spark, log, snapshot, origin, displayName, entry, queried, within)
      }
    } else this

  /** Whether two scans of one plan read the same rows even if there are commits in between. */
  def readsOneVersion: Boolean = origin != TableOrigin.Path

  /**
   * The table as the target of a command that is planned immediately. Spark may have resolved a name from its cache
   * of tables; the command changes the newest version.
   */
  def forCommand: DeltaicTable = {
    requireWhole()
    origin match {
      case TableOrigin.Path =>
        new DeltaicTable(spark, log, snapshot, TableOrigin.Catalog, displayName)
      case TableOrigin.Catalog =>
        val latest = withSameColumns(log.latest())
        new DeltaicTable(spark, log, latest, TableOrigin.Catalog, displayName, entry)
      case TableOrigin.TimeTravel | TableOrigin.Statement => this
    }
  }

  /**
   * The same for a statement on a view of the table, which may have been created from an older version.
   *
   * @param options of the relation in the view
   */
  def forCommandOnView(options: CaseInsensitiveStringMap): DeltaicTable = {
    requireWhole()
    val table = origin match {
      case TableOrigin.Path =>
        val latest = withSameColumns(log.latest())
        new DeltaicTable(spark, log, latest, TableOrigin.Catalog, displayName)
      case _ => forCommand
    }
    if (!AnalyzedColumns.hold(options, table.tableSchema)) throw schemaChanged(table.snapshot)
    table
  }

  override def location: Path = log.table

  override def followsNewVersions: Boolean = origin match {
    case TableOrigin.Catalog | TableOrigin.Path => true
    case TableOrigin.TimeTravel | TableOrigin.Statement => false
  }

  /** Whether Spark may replace it by a newer version after the analysis of a plan. */
  def isRefreshed: Boolean = origin == TableOrigin.Catalog

  override def isCachedBefore(commit: LocalCommit): Boolean = cachedVersions.areBefore(commit)

  override def refreshedTo(commit: LocalCommit): Unit = cachedVersions.add(commit)

  override def replaces(older: FollowsTable): Unit = older match {
    case older: DeltaicTable if origin == TableOrigin.Catalog && older.planKey == planKey =>
      val table = query.fold(this)(_.table)
      table.ownCachedVersions = cachedVersions.joinedTo(older.cachedVersions)
    case _ => ()
  }

  /**
   * Spark finds cached data by comparing plans. Data cached at one version must not be used for another,
   * unless this process has refreshed it since. A plan of a query equals only plans of queries.
   * A target is never equal to a table that is read, so that a rule that inserts it changes the plan. A table that
   * replaced another at the same path is not equal to it: its metadata id differs.
   */
  override def equals(other: Any): Boolean = other match {
    case that: DeltaicTable =>
      (this eq that) || hash == that.hash && planKey == that.planKey &&
      ((cachedVersions eq that.cachedVersions) ||
      snapshot.metadata.id == that.snapshot.metadata.id &&
      cachedVersions.meet(that.cachedVersions))
    case _ => false
  }

  override def hashCode(): Int = hash

  override def toString: String = name()

  /** How a plan refers to the table. */
  private lazy val planKey: (Path, TableOrigin, Boolean, Boolean, Option[Path]) =
    (log.table, origin, query.isDefined, isTarget, within.map(_.path))

  private lazy val hash: Int = planKey.hashCode()
}
