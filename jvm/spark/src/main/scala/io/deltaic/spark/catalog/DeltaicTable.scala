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
import io.deltaic.spark.scan.files.{
  FollowsTable,
  LocalCommit,
  QuerySnapshots,
  ReadsNewest,
  SnapshotFiles
}
import io.deltaic.spark.scan.{ScanContext, TableScanBuilder}
import io.deltaic.spark.schema.{
  AnalyzedColumns,
  IdentityColumn,
  ScanColumns,
  SchemaChecks,
  TableSchema
}
import io.deltaic.spark.util.TableWithSchema
import io.deltaic.spark.write.{ComputesColumns, WriteIntent, WriteTarget, WriteTargets}

/**
 * A table as Spark's planner sees it. It has no `id`: with one, Spark would refuse a DataFrame of a table name after
 * the table has been replaced.
 *
 * Spark does not resolve statements that write it or change its rows until a rule replaces it by its [[TargetTable]]
 * (docs/decisions/0032).
 *
 * @param entry its entry in the session catalog, if it was loaded by name
 * @param within the partition to which reads are limited, if a path names one
 * @param original the table of the DataFrame, if this one is its copy in a query
 */
private[spark] class DeltaicTable(
    val spark: SparkSession,
    tableVersion: TableVersion,
    displayName: Option[String] = None,
    entry: Option[CatalogTable] = None,
    within: Option[TablePartition] = None,
    original: Option[DeltaicTable] = None
) extends TableWithSchema
    with SupportsRead
    with SupportsWrite
    with SupportsMetadataColumns
    with FollowsTable
    with ReadsNewest
    with ComputesColumns
    with WriteTargets {

  def log: DeltaLog = tableVersion.log

  /** The snapshot with which plans are analyzed. */
  def snapshot: Snapshot = tableVersion.snapshot

  val tableSchema: TableSchema = original.fold(TableSchema.of(snapshot))(_.tableSchema)

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
  override def capabilities(): JSet[TableCapability] =
    if (isRefreshed)
      EnumSet.of(
        BATCH_READ,
        MICRO_BATCH_READ,
        BATCH_WRITE,
        STREAMING_WRITE,
        TRUNCATE,
        OVERWRITE_BY_FILTER,
        OVERWRITE_DYNAMIC,
        ACCEPT_ANY_SCHEMA
      )
    else EnumSet.of(BATCH_READ, MICRO_BATCH_READ)

  override def metadataColumns(): Array[MetadataColumn] =
    ScanColumns.metadataColumns(tableSchema.rowTracking)

  /** If the table has a column `_metadata`, ours remains accessible by `DataFrame.metadataColumn`. */
  override def canRenameConflictingMetadataColumns: Boolean = true

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    scanBuilder(options, isChanged = false)

  /** @param isChanged whether the statement changes the table */
  def scanBuilder(options: CaseInsensitiveStringMap, isChanged: Boolean): ScanBuilder = {
    TableServices.current.requireSession(spark, log.table.toString)
    ChangeFeedOptions.refuse(log, options)
    if (isRefreshed && !AnalyzedColumns.hold(options, tableSchema))
      throw tableVersion.schemaChanged(snapshot)
    val current = tableVersion.toRead
    val readOptions = AnalyzedColumns.without(options)
    val settings = readOptions.asCaseSensitiveMap.asScala.toMap
    val schema = schemaOf(current)
    val conditions = within.fold(Seq.empty[Expression])(_.conditions)
    val files = SnapshotFiles(spark, log, current, schema, settings, conditions)
    val context = ScanContext(Some(streaming(readOptions, _)), isChanged)
    new TableScanBuilder(spark, files, schema, readOptions, context)
  }

  private def streaming(options: CaseInsensitiveStringMap, checkpoint: String): MicroBatchStream = {
    requireWhole()
    tableVersion.requireStreamable()
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
    new ChangeFeedRequest(spark, tableVersion, name(), options, mayBeEmpty, identifiesRows).table
  }

  /** The change data feed for a read that may be the source of a stream. */
  def changesToStream(options: CaseInsensitiveStringMap): ChangesTable = {
    requireWhole()
    new ChangeFeedRequest(
      spark,
      tableVersion,
      name(),
      options,
      mayBeEmpty = false,
      identifiesRows = false
    )
      .mayBeStreamed { (changes, readOptions, checkpoint) =>
        tableVersion.requireStreamable()
        TableServices.current.streamOfChanges(spark, this, changes, readOptions, checkpoint)
      }
  }

  /** The same table as the target of a statement, which Spark then resolves. */
  def asTarget: TargetTable = {
    requireWhole()
    new TargetTable(spark, tableVersion.reloaded, displayName, entry)
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
      Some(tableVersion.toChange),
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
    tableVersion.requireNoTimeTravel(command.toString)
    requireExtension(command.toString)
    val columns = merge.flatMap(_.evolved).getOrElse(tableSchema.all)
    SchemaChecks.requireChangeableNames(log.table.toString, columns.fieldNames.toSeq, command)
    val read = tableVersion.toChange
    // The statement generates identity values from the high-water marks at its analysis.
    if (read.version != snapshot.version && TableSchema.of(read).stored != tableSchema.stored)
      throw tableVersion.schemaChanged(read)
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

  private def schemaOf(version: Snapshot): TableSchema =
    if (tableVersion.hasSameDefinition(version)) tableSchema else TableSchema.of(version)

  /** Whether it is the same table with the same columns, at any version. */
  def hasSameColumns(other: DeltaicTable): Boolean =
    log.table == other.log.table && snapshot.metadata.id == other.snapshot.metadata.id &&
    tableSchema.all == other.tableSchema.all &&
    AnalyzedColumns.of(tableSchema) == AnalyzedColumns.of(other.tableSchema)

  /** The same table pinned to the version of a statement; see [[TableVersion]]. */
  def pinnedTo(version: Snapshot): DeltaicTable = pinnedAt(tableVersion.pinnedTo(version))

  /** The same, pinned to the newest version as all reads of the statement see it. */
  def pinnedTo(newest: QuerySnapshots): DeltaicTable = pinnedAt(tableVersion.pinnedTo(newest))

  /** The same for a row-level change of the table. */
  def pinnedToChanged(version: Snapshot): DeltaicTable =
    pinnedAt(tableVersion.pinnedToChanged(version))

  private def pinnedAt(version: TableVersion): DeltaicTable =
    if (version eq tableVersion) this
    else new DeltaicTable(spark, version, displayName, within = within)

  override def pinnedTo(newest: Option[QuerySnapshots]): DeltaicTable =
    if (followsNewVersions && !isTarget) {
      val table = original.getOrElse(this)
      newest.fold(table) { snapshots =>
        val version = tableVersion.inQuery(snapshots)
        new DeltaicTable(spark, version, displayName, entry, within, original = Some(table))
      }
    } else this

  /** The source of a stream, with the tracked definition of the table. */
  def trackedAs(definition: Snapshot): DeltaicTable = {
    requireWhole()
    tableVersion.requireStreamable()
    new DeltaicTable(spark, TableVersion.tracked(log, definition), displayName)
  }

  /** Whether two scans of one plan read the same rows even if there are commits in between. */
  def readsOneVersion: Boolean = tableVersion.readsOneVersion

  /** The table as the target of a command that is planned immediately; see [[TableVersion.forCommand]]. */
  def forCommand: DeltaicTable = {
    requireWhole()
    commandAt(tableVersion.forCommand)
  }

  /**
   * The same for a statement on a view of the table.
   *
   * @param options of the relation in the view
   */
  def forCommandOnView(options: CaseInsensitiveStringMap): DeltaicTable = {
    requireWhole()
    val version = tableVersion.forCommandOnView
    val table = commandAt(version)
    if (!AnalyzedColumns.hold(options, table.tableSchema))
      throw version.schemaChanged(table.snapshot)
    table
  }

  private def commandAt(version: TableVersion): DeltaicTable =
    if (version eq tableVersion) this else new DeltaicTable(spark, version, displayName, entry)

  override def location: Path = log.table

  override def followsNewVersions: Boolean = tableVersion.followsNewVersions

  /** Whether Spark may replace it by a newer version after the analysis of a plan. */
  def isRefreshed: Boolean = tableVersion.isRefreshed

  private lazy val identity: PlanIdentity = new PlanIdentity(
    TableReference(
      log.table,
      tableVersion.productPrefix,
      tableVersion.isInQuery,
      isTarget,
      within.map(_.path)
    ),
    snapshot,
    original.fold(new CachedData(tableVersion.loaded.commit))(_.identity.cached)
  )

  override def isCachedBefore(commit: LocalCommit): Boolean = identity.isCachedBefore(commit)

  override def refreshedTo(commit: LocalCommit): Unit = identity.refreshedTo(commit)

  override def replaces(older: FollowsTable): Unit = older match {
    case older: DeltaicTable if isRefreshed => identity.replaces(older.identity)
    case _ => ()
  }

  /** See [[PlanIdentity]]. */
  override def equals(other: Any): Boolean = other match {
    case that: DeltaicTable => (this eq that) || identity == that.identity
    case _ => false
  }

  override def hashCode(): Int = identity.hashCode()

  override def toString: String = name()
}
