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
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.deltaic.{SchemaShims, SessionShims}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.changes.{ChangesTable, ReadCompatibility}
import io.deltaic.spark.rowlevel.{MergeTerms, RowLevelChange, RowReplacement}
import io.deltaic.spark.scan._
import io.deltaic.spark.stream.TableStream
import io.deltaic.spark.write._
import io.deltaic.spark.{SessionRequirements, UnsupportedOperation}

/** How a table came into a plan, which decides the version its scans read. */
private[spark] sealed trait TableOrigin

private[spark] object TableOrigin {

  /** Through the catalog: Spark itself loads the table anew for each query, by its version. */
  case object Catalog extends TableOrigin

  /** From a path, without a catalog: each query reads the newest version. */
  case object Path extends TableOrigin

  /** At a version the user named: it stays. */
  case object TimeTravel extends TableOrigin

  /** At the version that the statement it is part of has settled on. */
  case object Statement extends TableOrigin
}

/** @param newest what the query's scans agree on */
private[spark] final case class QueriedTable(table: DeltaicTable, newest: NewestSnapshots)

/**
 * A table as Spark's planner sees it. It has no `id`, by which Spark would refuse to show a DataFrame of a name the
 * rows of a table that has replaced the one it was made from.
 *
 * Spark leaves the statements alone that write it or change its rows, until a rule puts its [[TargetTable]] in its
 * place (docs/decisions/0032).
 *
 * @param entry what the session catalog lists, for a table that was found there
 * @param query the query that it is a part of; a DataFrame's table is part of none yet, a target never is
 * @param within the partition that a path names, for the table to be read no further
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

  /** The versions that data cached from this table stands for; see [[equals]]. */
  private def cachedVersions: CachedVersions =
    query.fold(ownCachedVersions)(_.table.ownCachedVersions)

  val tableSchema: TableSchema = query.fold(TableSchema.of(snapshot))(_.table.tableSchema)

  override def generatedColumns: Map[String, String] = tableSchema.generated

  override def identityColumns: Seq[IdentityColumn] =
    tableSchema.stored.filter(f => tableSchema.identity(f.name)).flatMap(IdentityColumn.of)

  override def name(): String = displayName.getOrElse(s"delta.`${log.table}`")

  override def version(): String = if (isRefreshed) snapshot.version.toString else null

  override def columns(): Array[Column] = SchemaShims.columns(tableSchema.all)

  private lazy val description = new TableDescription(snapshot, tableSchema, entry)

  override def partitioning(): Array[Transform] = description.partitioning

  override def properties(): JMap[String, String] = description.properties.asJava

  /** A statement that makes such a table; see [[TableDescription.createStatement]]. */
  def createStatement(name: String, isPath: Boolean): CreateStatement =
    description.createStatement(name, isPath)

  /**
   * A table from a path cannot be written by Spark's V2 commands: `save(path)` must reach
   * [[io.deltaic.spark.DeltaicDataSource]], which alone can create the table.
   */
  override def capabilities(): JSet[TableCapability] = origin match {
    case TableOrigin.Catalog =>
      EnumSet.of(
        BATCH_READ,
        MICRO_BATCH_READ,
        BATCH_WRITE,
        STREAMING_WRITE, // for our own rule to refuse it, and say what works instead
        TRUNCATE,
        OVERWRITE_BY_FILTER,
        OVERWRITE_DYNAMIC,
        ACCEPT_ANY_SCHEMA
      )
    case _ => EnumSet.of(BATCH_READ, MICRO_BATCH_READ)
  }

  override def metadataColumns(): Array[MetadataColumn] =
    ScanColumns.metadataColumns(tableSchema.rowTracking)

  /** Where the table has a column `_metadata`, ours stays within reach of `DataFrame.metadataColumn`. */
  override def canRenameConflictingMetadataColumns: Boolean = true

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder =
    scanBuilder(options, isChanged = false)

  /** @param isChanged whether the statement changes the table */
  def scanBuilder(options: CaseInsensitiveStringMap, isChanged: Boolean): ScanBuilder = {
    SessionRequirements.require(spark, log.table.toString)
    UnsupportedReadOptions.refuse(log, options)
    if (isRefreshed && !AnalysedColumns.hold(options, tableSchema)) throw schemaChanged(snapshot)
    val current = snapshotToRead()
    val asked = AnalysedColumns.without(options)
    val settings = asked.asCaseSensitiveMap.asScala.toMap
    val schema = schemaOf(current)
    val conditions = within.fold(Seq.empty[Expression])(_.conditions)
    val files = SnapshotFiles(spark, log, current, schema, settings, conditions)
    val streams = Some(streaming(asked, _))
    new TableScanBuilder(spark, files, schema, asked, streams = streams, isChanged = isChanged)
  }

  private def streaming(options: CaseInsensitiveStringMap, checkpoint: String): TableStream = {
    requireWhole()
    if (origin == TableOrigin.TimeTravel)
      throw UnsupportedOperation(
        log.table.toString,
        s"a stream of the older version ${snapshot.version}"
      )
    new TableStream(spark, this, options, checkpoint)
  }

  /**
   * What changed in the table, as these options ask (see [[ChangeFeedOptions]]).
   *
   * @param mayBeEmpty whether a range that ends right before it starts is one
   * @param identifiesRows whether each row has its row id: the changes are then those of data files
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

  /** The same table as the target of a statement, for Spark to plan. */
  def asTarget: TargetTable = {
    requireWhole()
    new TargetTable(spark, log, snapshot, origin, displayName, entry)
  }

  def isTarget: Boolean = false

  /** Spark has fitted no rows to this table: see [[TargetTable]]. */
  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder =
    throw extensionMissing("a write")

  override def writeTarget: WriteTarget = {
    requireWhole()
    WriteTarget(
      spark,
      log,
      Some(snapshotToChange()),
      tableSchema.partitionColumns,
      WriteIntent("WRITE", Map.empty, mode = "append"),
      RowReplacement
    )
  }

  /** What is not a plain read takes the table, never a part of it. */
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
      merge: Option[MergeTerms] = None
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
    // The statement numbers rows from where the table was when it was analysed.
    if (read.version != snapshot.version && TableSchema.of(read).stored != tableSchema.stored)
      throw schemaChanged(read)
    new RowLevelChange(spark, log, read, command, merge = merge)
  }

  def requireExtension(operation: String): Unit =
    if (!SessionShims.plansWith(spark, DeletionVectorStrategy)) throw extensionMissing(operation)

  private def extensionMissing(operation: String): DeltaicThrowable = DeltaicException(
    "DELTAIC_EXTENSION_MISSING",
    Map("table" -> log.table.toString, "operation" -> operation)
  )

  /** The rules of the extension compute columns; without them, nulls would be written in their place. */
  def requireCanCompute(): Unit =
    if (computesColumns) requireExtension("a write that computes columns")

  /** The pinned version, or the one that the query agrees on if it still has the columns this plan was analysed with. */
  private def snapshotToRead(): Snapshot = origin match {
    case TableOrigin.Catalog => query.fold(snapshot)(q => withSameColumns(q.newest.ofLoaded(log)))
    case TableOrigin.TimeTravel | TableOrigin.Statement => snapshot
    case TableOrigin.Path =>
      withSameColumns(query.fold(log.latest())(_.newest.of(log)))
  }

  /** A statement changes the version that Spark loaded for it, whatever a query that named the table agreed on. */
  private def snapshotToChange(): Snapshot =
    if (origin == TableOrigin.Catalog) snapshot else snapshotToRead()

  /** A newer version, if it still has the columns of this one. */
  private def withSameColumns(latest: Snapshot): Snapshot =
    if (hasColumns(latest)) latest else throw schemaChanged(latest)

  private def schemaChanged(latest: Snapshot): DeltaicThrowable = DeltaicException(
    "DELTAIC_SCHEMA_CHANGED",
    Map("table" -> log.table.toString, "version" -> latest.version.toString)
  )

  /** Whether a version has all columns of this one. Those it has besides are not in plans for this one. */
  private def hasColumns(version: Snapshot): Boolean =
    hasSameDefinition(version) ||
    ReadCompatibility.holds(version.metadata, snapshot.metadata, dataIsOlder = false)

  private def schemaOf(version: Snapshot): TableSchema =
    if (hasSameDefinition(version)) tableSchema else TableSchema.of(version)

  /** Whether it is the same table with the same columns, at whichever version. */
  def hasSameColumns(other: DeltaicTable): Boolean =
    log.table == other.log.table && snapshot.metadata.id == other.snapshot.metadata.id &&
    tableSchema.all == other.tableSchema.all &&
    AnalysedColumns.of(tableSchema) == AnalysedColumns.of(other.tableSchema)

  private def hasSameDefinition(version: Snapshot): Boolean = (version eq snapshot) ||
    version.metadata == snapshot.metadata && version.protocol == snapshot.protocol

  /**
   * The same table at a version that a statement has settled on, for all its reads to agree with its
   * write. A table whose columns have changed since stays as it is, and fails when it is read.
   */
  def pinnedTo(version: Snapshot): DeltaicTable =
    if (origin == TableOrigin.Path && hasColumns(version)) settled(version) else this

  /**
   * The same for a change of this very table: what its conditions and its source read of the table, too,
   * they read at the version that is changed.
   */
  def settledOn(version: Snapshot): DeltaicTable = origin match {
    case TableOrigin.TimeTravel => this
    case _ if hasColumns(version) => settled(version)
    case _ => throw schemaChanged(version)
  }

  private def settled(version: Snapshot): DeltaicTable =
    new DeltaicTable(spark, log, version, TableOrigin.Statement, displayName, within = within)

  /** The same at the version that is the newest to all reads of the statement. */
  def pinnedTo(newest: NewestSnapshots): DeltaicTable =
    if (origin == TableOrigin.Path) pinnedTo(newest.of(log)) else this

  override def agreeingOn(newest: Option[NewestSnapshots]): DeltaicTable =
    if (followsNewVersions && !isTarget) {
      val table = query.fold(this)(_.table)
      newest.fold(table) { agreed =>
        if (origin == TableOrigin.Catalog) agreed.load(log, loaded)
        val queried = Some(QueriedTable(table, agreed))
        new DeltaicTable(spark, log, snapshot, origin, displayName, entry, queried, within)
      }
    } else this

  /** Whether two scans of one plan read the same rows, whatever is committed in between. */
  def readsOneVersion: Boolean = origin != TableOrigin.Path

  /**
   * The table as a statement names it, for a command that is planned right away. A name may have been looked up among
   * cached tables; what is changed is the newest version.
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
   * The same for a statement that names a view of the table, which may have been made of an older version.
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
    if (!AnalysedColumns.hold(options, table.tableSchema)) throw schemaChanged(table.snapshot)
    table
  }

  override def location: Path = log.table

  override def followsNewVersions: Boolean = origin match {
    case TableOrigin.Catalog | TableOrigin.Path => true
    case TableOrigin.TimeTravel | TableOrigin.Statement => false
  }

  /** Whether Spark may put a newer version in its place once a plan has been analysed. */
  def isRefreshed: Boolean = origin == TableOrigin.Catalog

  override def isCachedBefore(commit: LocalCommit): Boolean = cachedVersions.areBefore(commit)

  override def refreshedTo(commit: LocalCommit): Unit = cachedVersions.add(commit)

  override def replaces(older: FollowsTable): Unit = older match {
    case older: DeltaicTable if origin == TableOrigin.Catalog && older.way == way =>
      val table = query.fold(this)(_.table)
      table.ownCachedVersions = cachedVersions.joinedTo(older.cachedVersions)
    case _ => ()
  }

  /**
   * Spark finds cached data by comparing plans. Data cached at one version must not answer for another,
   * unless this process has refreshed it since. A plan that is part of a query is compared with such plans
   * alone. A target is another table: a rule that puts it into a plan has changed the plan. So is a table that
   * took the place of another at the same path: it has another id.
   */
  override def equals(other: Any): Boolean = other match {
    case that: DeltaicTable =>
      (this eq that) || hash == that.hash && way == that.way &&
      ((cachedVersions eq that.cachedVersions) ||
      snapshot.metadata.id == that.snapshot.metadata.id &&
      cachedVersions.meet(that.cachedVersions))
    case _ => false
  }

  override def hashCode(): Int = hash

  override def toString: String = name()

  /** How plans come to the table. */
  private lazy val way: (Path, TableOrigin, Boolean, Boolean, Option[Path]) =
    (log.table, origin, query.isDefined, isTarget, within.map(_.path))

  private lazy val hash: Int = way.hashCode()
}
