package io.deltaic.spark

import java.util.{Map => JMap}

import org.apache.spark.sql.catalyst.analysis.{NoSuchTableException, TableAlreadyExistsException}
import org.apache.spark.sql.catalyst.catalog.CatalogUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.deltaic.SchemaShims

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.catalog._
import io.deltaic.spark.write.WriteTransaction

/**
 * The session catalog with Deltaic's tables in it: `spark.sql.catalog.spark_catalog`. Tables of other
 * providers go to the catalog it extends.
 */
class DeltaicCatalog extends DelegatingCatalogExtension with StagingTableCatalog {

  private def spark: SparkSession = SparkSession.active

  override def loadTable(identifier: Identifier): Table =
    load(identifier, super.loadTable(identifier)) { log =>
      new DeltaicTable(spark, log, log.latest(), TableOrigin.Catalog, displayName(identifier))
    }

  override def loadTable(identifier: Identifier, version: String): Table =
    load(identifier, super.loadTable(identifier, version)) { log =>
      atVersion(identifier, log, TimeTravel.parseVersion(log, version))
    }

  /** @param timestampMicros since the epoch */
  override def loadTable(identifier: Identifier, timestampMicros: Long): Table =
    load(identifier, super.loadTable(identifier, timestampMicros)) { log =>
      atVersion(identifier, log, log.versionAt(Math.floorDiv(timestampMicros, 1000L)))
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
  ): Table =
    if (isDeltaic(identifier, properties)) {
      if (tableExists(identifier)) throw new TableAlreadyExistsException(identifier)
      creation(identifier, columns, partitions, properties).create()
      loadTable(identifier)
    } else super.createTable(identifier, columns, partitions, properties)

  override def createTable(identifier: Identifier, table: TableInfo): Table =
    createTable(identifier, table.columns, table.partitions, table.properties)

  override def stageCreate(
      identifier: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: JMap[String, String]
  ): StagedTable = stage(identifier, columns, partitions, properties, TableCreation.Create)

  override def stageReplace(
      identifier: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: JMap[String, String]
  ): StagedTable = {
    if (!tableExists(identifier)) throw new NoSuchTableException(identifier)
    stage(identifier, columns, partitions, properties, TableCreation.Replace)
  }

  override def stageCreateOrReplace(
      identifier: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: JMap[String, String]
  ): StagedTable = stage(identifier, columns, partitions, properties, TableCreation.CreateOrReplace)

  override def alterTable(identifier: Identifier, changes: TableChange*): Table =
    loadTable(identifier) match {
      case table: DeltaicTable =>
        val kinds = changes.map(_.getClass.getSimpleName).distinct.mkString(", ")
        throw WriteTransaction.unsupported(table.log.table.toString, s"ALTER TABLE ($kinds)")
      case _ => super.alterTable(identifier, changes: _*)
    }

  private def stage(
      identifier: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: JMap[String, String],
      statement: String
  ): StagedTable =
    if (isDeltaic(identifier, properties))
      creation(identifier, columns, partitions, properties).staged(statement)
    else {
      if (statement != TableCreation.Create && tableExists(identifier)) super.dropTable(identifier)
      super.createTable(identifier, columns, partitions, properties)
      new UnstagedTable(super.loadTable(identifier), () => super.dropTable(identifier))
    }

  private def creation(
      identifier: Identifier,
      columns: Array[Column],
      partitions: Array[Transform],
      properties: JMap[String, String]
  ): TableCreation = new TableCreation(
    spark,
    identifier,
    SchemaShims.schema(columns),
    partitions,
    properties
  )

  /** A path, or a table that the catalog lists with our provider; anything else is `other`. */
  private def load(identifier: Identifier, other: => Table)(
      open: DeltaLog => Table
  ): Table = TableLocation.pathOf(identifier) match {
    case Some(path) => open(TableLocation.requireExists(TableLocation.log(spark, path)))
    case None =>
      SchemaShims.listed(super.loadTable(identifier)) match {
        case Some(listed) if listed.provider.exists(TableLocation.isDeltaic(_)) =>
          val log = TableLocation.log(spark, CatalogUtils.URIToString(listed.location))
          open(TableLocation.requireExists(log))
        case _ => other
      }
  }

  private def atVersion(
      identifier: Identifier,
      log: DeltaLog,
      version: Long
  ): Table = new DeltaicTable(
    spark,
    log,
    log.at(version),
    TableOrigin.TimeTravel,
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
