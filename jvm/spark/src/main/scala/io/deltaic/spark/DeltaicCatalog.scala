package io.deltaic.spark

import java.util.{EnumSet, Map => JMap, Set => JSet}

import scala.util.control.NonFatal

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.analysis.{
  NoSuchDatabaseException,
  NoSuchNamespaceException,
  NoSuchTableException,
  TableAlreadyExistsException
}
import org.apache.spark.sql.catalyst.catalog.{CatalogTableType, CatalogUtils}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.slf4j.{Logger, LoggerFactory}

import io.deltaic.maintenance.{MaintenanceQueue, MaintenanceState}
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.catalog.definition.{
  ColumnDefinitions,
  TableAlteration,
  TableCreation,
  TableRelocation
}
import io.deltaic.spark.catalog.{
  AsOf,
  ChangesClause,
  CreateStatement,
  DeltaTableCatalog,
  DeltaicTable,
  ExistingTable,
  LocatedTable,
  NonAtomicStagedTable,
  TableLocation,
  TableVersion,
  TimeTravel,
  TimeTravelSuffix
}
import io.deltaic.spark.errors.DeltaicUnsupportedOperationException
import io.deltaic.spark.optimize.AutoCompaction

/**
 * The session catalog with Deltaic's tables in it: `spark.sql.catalog.spark_catalog`. Tables of other
 * providers go to the catalog it extends.
 */
class DeltaicCatalog extends DelegatingCatalogExtension
    with StagingTableCatalog
    with DeltaTableCatalog {

  private def spark: SparkSession = SparkSession.active

  /** The capabilities of Deltaic tables; a table of another provider needs those of the extended catalog. */
  override def capabilities(): JSet[TableCatalogCapability] = {
    val all = EnumSet.noneOf(classOf[TableCatalogCapability])
    all.addAll(super.capabilities)
    all.addAll(ColumnDefinitions.capabilities)
    all
  }

  override def loadTable(identifier: Identifier): Table =
    find(identifier) match {
      case Some(LocatedTable(log, Some(asOf), _)) => travelled(identifier, log, asOf)
      case Some(LocatedTable(log, None, entry)) =>
        new DeltaicTable(
          spark,
          TableVersion.ofCatalog(log, log.latest()),
          displayName(identifier),
          entry
        )
      case None => super.loadTable(identifier)
    }

  override def loadTable(identifier: Identifier, version: String): Table =
    load(identifier, super.loadTable(identifier, version))(TimeTravel.version(_, version))

  /** @param timestampMicros since the epoch */
  override def loadTable(identifier: Identifier, timestampMicros: Long): Table =
    load(identifier, super.loadTable(identifier, timestampMicros)) { _ =>
      AsOf.Time(Math.floorDiv(timestampMicros, 1000L))
    }

  /** Spark's CHANGES clause. Spark does not delegate it to the catalog that this one extends. */
  override def loadChangelog(
      identifier: Identifier,
      context: ChangelogContext,
      options: CaseInsensitiveStringMap
  ): Changelog =
    try loadTable(identifier) match {
        case table: DeltaicTable => ChangesClause.changelog(table, context)
        case _ => super.loadChangelog(identifier, context, options)
      }
    catch {
      case e: DeltaicUnsupportedOperationException =>
        throw ChangesClause.asAnalysisException(e)
    }

  override def tableExists(identifier: Identifier): Boolean =
    TableLocation.pathOf(identifier) match {
      case Some(path) => TableLocation.log(spark, path).exists
      case None => super.tableExists(identifier)
    }

  override def createTable(
      identifier: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: JMap[String, String]
  ): Table = createTable(identifier, DeltaicCatalog.info(columns, partitions, properties))

  override def createTable(identifier: Identifier, table: TableInfo): Table =
    if (isDeltaic(identifier, table.properties)) {
      if (tableExists(identifier)) throw new TableAlreadyExistsException(identifier)
      new TableCreation(spark, identifier, table, CreateStatement.Create).create()
      loadTable(identifier)
    } else {
      ColumnDefinitions.requireSupported(super.capabilities, identifier, table)
      super.createTable(identifier, table.columns, table.partitions, table.properties)
    }

  override def createTableLike(identifier: Identifier, table: TableInfo, source: Table): Table = {
    val like = Some(source).collect { case ours: DeltaicTable => ours.snapshot }
    val isOurs =
      if (table.properties.containsKey(TableCatalog.PROP_PROVIDER))
        isDeltaic(identifier, table.properties)
      else like.isDefined || TableLocation.pathOf(identifier).isDefined
    if (isOurs) {
      if (tableExists(identifier)) throw new TableAlreadyExistsException(identifier)
      new TableCreation(spark, identifier, table, CreateStatement.Create).create(like)
      loadTable(identifier)
    } else super.createTable(identifier, table.columns, table.partitions, table.properties)
  }

  override def stageCreate(
      identifier: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: JMap[String, String]
  ): StagedTable = stageCreate(identifier, DeltaicCatalog.info(columns, partitions, properties))

  override def stageCreate(identifier: Identifier, table: TableInfo): StagedTable =
    stage(identifier, table, CreateStatement.Create)

  override def stageReplace(
      identifier: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: JMap[String, String]
  ): StagedTable = stageReplace(identifier, DeltaicCatalog.info(columns, partitions, properties))

  override def stageReplace(identifier: Identifier, table: TableInfo): StagedTable = {
    if (!tableExists(identifier)) throw new NoSuchTableException(identifier)
    stage(identifier, table, CreateStatement.Replace)
  }

  override def stageCreateOrReplace(
      identifier: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: JMap[String, String]
  ): StagedTable =
    stageCreateOrReplace(identifier, DeltaicCatalog.info(columns, partitions, properties))

  override def stageCreateOrReplace(identifier: Identifier, table: TableInfo): StagedTable =
    stage(identifier, table, CreateStatement.CreateOrReplace)

  override def dropTable(identifier: Identifier): Boolean = {
    stopMaintenance(identifier)
    super.dropTable(identifier)
  }

  override def purgeTable(identifier: Identifier): Boolean = {
    stopMaintenance(identifier)
    super.purgeTable(identifier)
  }

  /** Stops maintenance before a managed table's directory is deleted. An external table's directory stays. */
  private def stopMaintenance(identifier: Identifier): Unit = {
    // An error of the table is reported by the drop itself.
    val found =
      try listed(identifier)
      catch { case NonFatal(_) => None }
    val isManaged = found.flatMap(_.entry).exists(_.tableType == CatalogTableType.MANAGED)
    found.filter(_ => isManaged).map(_.log.table).foreach { table =>
      val timeoutMs = DeltaicCatalog.MaintenanceTimeoutMs
      val hasEnded = AutoCompaction.cancel(table, timeoutMs)
      if (!MaintenanceQueue.cancel(table, timeoutMs) || !hasEnded)
        DeltaicCatalog.logger.warn(
          "Table {} is dropped while its maintenance is still running after {} ms",
          table,
          timeoutMs
        )
      MaintenanceState.forget(table)
    }
  }

  override def alterTable(identifier: Identifier, changes: TableChange*): Table =
    loadTable(identifier) match {
      case table: DeltaicTable =>
        changes match {
          case Seq(set: TableChange.SetProperty) if set.property == TableCatalog.PROP_LOCATION =>
            new TableRelocation(spark, identifier, table)(set.value)
          case _ => new TableAlteration(spark, table)(changes)
        }
        loadTable(identifier)
      case _ => super.alterTable(identifier, changes: _*)
    }

  private def stage(identifier: Identifier, table: TableInfo, statement: String): StagedTable =
    if (isDeltaic(identifier, table.properties))
      new TableCreation(spark, identifier, table, statement).staged()
    else {
      ColumnDefinitions.requireSupported(super.capabilities, identifier, table)
      if (statement != CreateStatement.Create && tableExists(identifier))
        super.dropTable(identifier)
      super.createTable(identifier, table.columns, table.partitions, table.properties)
      new NonAtomicStagedTable(super.loadTable(identifier), () => super.dropTable(identifier))
    }

  /** A Deltaic table at a given version; any other table is `other`. */
  private def load(identifier: Identifier, other: => Table)(asOf: DeltaLog => AsOf): Table =
    find(identifier) match {
      case Some(found) =>
        TimeTravel.refuseSuffix(found)
        travelled(identifier, found.log, asOf(found.log))
      case None => other
    }

  /**
   * A path, or a table that the catalog lists with our provider, either with an optional time travel
   * suffix; none for a table of another provider. A table that does not exist is an error.
   */
  private def find(identifier: Identifier): Option[LocatedTable] =
    TableLocation.pathOf(identifier) match {
      case Some(path) => Some(existing(TableLocation.find(spark, path)))
      case None =>
        try listed(identifier)
        catch {
          case notListed: AnalysisException if DeltaicCatalog.isNotFound(notListed) =>
            Some(travelledName(identifier).orElse(relativePath(identifier)).getOrElse(
              throw notListed
            ))
        }
    }

  private def listed(identifier: Identifier): Option[LocatedTable] =
    SchemaInternals.listed(super.loadTable(identifier)).collect {
      case table if table.provider.exists(TableLocation.isDeltaic(_)) =>
        val log = TableLocation.log(spark, CatalogUtils.URIToString(table.location))
        LocatedTable(TableLocation.requireExists(spark, log), None, Some(table))
    }

  private[spark] override def existing(identifier: Identifier): Option[ExistingTable] = {
    val found = TableLocation.pathOf(identifier) match {
      case Some(path) => Some(ExistingTable(TableLocation.log(spark, path), isManaged = false))
      case None =>
        try SchemaInternals.listed(super.loadTable(identifier)).collect {
            case table if table.provider.exists(TableLocation.isDeltaic(_)) =>
              ExistingTable(
                TableLocation.log(spark, CatalogUtils.URIToString(table.location)),
                table.tableType == CatalogTableType.MANAGED
              )
          }
        catch { case e: AnalysisException if DeltaicCatalog.isNotFound(e) => None }
    }
    found.filter(_.log.exists)
  }

  private def travelledName(identifier: Identifier): Option[LocatedTable] =
    TimeTravelSuffix.of(identifier.name).flatMap { suffix =>
      val base = Identifier.of(identifier.namespace, suffix.base)
      val log =
        try listed(base).map(_.log)
        catch { case e: AnalysisException if DeltaicCatalog.isNotFound(e) => None }
      log.map(l => LocatedTable(l, Some(TableLocation.asOf(spark, l, suffix))))
    }

  /** A path relative to the working directory, used if no database named as the provider has the table. */
  private def relativePath(identifier: Identifier): Option[LocatedTable] =
    Option.when(TableLocation.mayBePath(identifier)) {
      existing(TableLocation.find(spark, identifier.name))
    }

  private def existing(found: LocatedTable): LocatedTable = {
    TableLocation.requireExists(spark, found.log)
    found
  }

  private def travelled(identifier: Identifier, log: DeltaLog, asOf: AsOf): Table =
    new DeltaicTable(
      spark,
      TableVersion.timeTravel(log, TimeTravel.open(spark, log, asOf)),
      displayName(identifier)
    )

  private def displayName(identifier: Identifier): Option[String] =
    Option.when(TableLocation.pathOf(identifier).isEmpty)(
      (name() +: identifier.namespace.toSeq :+ identifier.name).mkString(".")
    )

  private def isDeltaic(identifier: Identifier, properties: JMap[String, String]): Boolean = {
    val provider = Option(properties.get(TableCatalog.PROP_PROVIDER))
      .getOrElse(spark.sessionState.conf.defaultDataSourceName)
    TableLocation.pathOf(identifier).isDefined || TableLocation.isDeltaic(provider)
  }
}

private object DeltaicCatalog {

  val MaintenanceTimeoutMs = 60000L

  val logger: Logger = LoggerFactory.getLogger(classOf[DeltaicCatalog])

  def info(
      columns: Array[Column],
      partitions: Array[Transform],
      properties: JMap[String, String]
  ): TableInfo = new TableInfo.Builder()
    .withColumns(columns)
    .withPartitions(partitions)
    .withProperties(properties)
    .build()

  /** Whether a catalog says that it has no such table, or no such database. */
  def isNotFound(e: AnalysisException): Boolean = e match {
    case _: NoSuchTableException | _: NoSuchDatabaseException | _: NoSuchNamespaceException => true
    case _ => false
  }
}
