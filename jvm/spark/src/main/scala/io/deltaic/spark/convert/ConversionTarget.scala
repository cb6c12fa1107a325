package io.deltaic.spark.convert

import java.util.Locale

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogStorageFormat, CatalogTable, CatalogTableType}
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.SessionInternals
import org.apache.spark.sql.types.StructType

import io.deltaic.spark.catalog.TableLocation
import io.deltaic.spark.commit.Message

/**
 * What the name of Parquet files means in CONVERT TO DELTA and CLONE.
 *
 * @param location the folder
 * @param entry the table in the session catalog, if the name is one of a table
 * @param isDelta whether it is a Delta table by its name or by the catalog
 */
private[spark] final case class ConversionTarget(
    location: String,
    entry: Option[CatalogTable],
    isDelta: Boolean
) {

  /** Changes the entry of a converted table to one of a Delta table, as those of new tables. */
  def register(spark: SparkSession): Unit = entry.filterNot(_ => isDelta).foreach { table =>
    val catalog = spark.sessionState.catalog
    catalog.alterTable(table.copy(
      provider = Some(TableLocation.provider),
      schema = new StructType(),
      partitionColumnNames = Nil,
      bucketSpec = None,
      properties = Map.empty,
      storage = CatalogStorageFormat.empty.copy(locationUri = table.storage.locationUri),
      tracksPartitionsInCatalog = false
    ))
    catalog.refreshTable(table.identifier)
  }

  /** The full name of the table in the catalog. */
  def name: Option[String] = entry.map(_.identifier.nameParts.map(quoteIfNeeded).mkString("."))

  /** What the catalog knows of the files, for Python: the properties are those that users have set. */
  def entryMessage: ObjectNode = Message.of("ParquetEntry")(
    "catalogTable" -> entry.map(_.identifier.quotedString),
    "properties" ->
      entry.fold(Map.empty[String, String])(_.properties.removedAll(ConversionTarget.OfHive)),
    "description" -> entry.flatMap(_.comment)
  )
}

private[spark] object ConversionTarget {

  /** @param name as SQL spells it, in parts */
  def of(spark: SparkSession, name: Seq[String]): ConversionTarget = name match {
    case Seq(format, path) if isPath(path) && !isTable(spark, format, path) =>
      format.toLowerCase(Locale.ROOT) match {
        case "parquet" => ConversionTarget(path, None, isDelta = false)
        case TableLocation.provider =>
          TableLocation.requireExists(spark, TableLocation.log(spark, path))
          ConversionTarget(path, None, isDelta = true)
        case _ => throw ConversionError.source(quoted(name), s"$format files are not converted")
      }
    case Seq(format, path) if isRelative(format, path) && !isTable(spark, format, path) =>
      throw ConversionError.source(quoted(name), "a path has to be absolute")
    case Seq(path) if isPath(path) =>
      throw ConversionError.source(
        quoted(name),
        "a path without the format of its files is the name of a table"
      )
    case _ => inCatalog(spark, name)
  }

  private def inCatalog(spark: SparkSession, name: Seq[String]): ConversionTarget = {
    val catalog = spark.sessionState.catalog
    if (catalog.isTempView(name)) throw ConversionError.source(quoted(name), "it is a view")
    val (plugin, identifier) = SessionInternals.identify(spark, name)
    if (
      plugin.name != SessionInternals.sessionCatalog(spark).name || identifier.namespace.length > 1
    )
      throw ConversionError.source(quoted(name), "it is not in the session catalog")
    val table = catalog.getTableMetadata(
      TableIdentifier(identifier.name, identifier.namespace.headOption)
    )
    val provider = table.provider.getOrElse("")
    def target(isDelta: Boolean) =
      ConversionTarget(new Path(table.location).toString, Some(table), isDelta)
    if (!Set(CatalogTableType.MANAGED, CatalogTableType.EXTERNAL)(table.tableType))
      throw ConversionError.source(quoted(name), "it is a view")
    else if (TableLocation.isDeltaic(provider)) target(isDelta = true)
    else if (provider.equalsIgnoreCase("parquet") || isParquetOfHive(table))
      target(isDelta = false)
    else throw ConversionError.source(quoted(name), s"it is a table of the format $provider")
  }

  private def isParquetOfHive(table: CatalogTable): Boolean =
    table.provider.contains("hive") &&
    table.storage.serde.exists(_.toLowerCase(Locale.ROOT).contains("parquet"))

  /** Whether the name is the format and the path of Parquet files. */
  def isParquetPath(name: Seq[String]): Boolean = name match {
    case Seq(format, path) =>
      format.equalsIgnoreCase("parquet") && (isPath(path) || isRelative(format, path))
    case _ => false
  }

  /** Names of tables have no slash. */
  private def isRelative(format: String, path: String): Boolean =
    Set("parquet", TableLocation.provider)(format.toLowerCase(Locale.ROOT)) && path.contains('/') &&
    !isPath(path)

  private def isPath(name: String): Boolean = name.nonEmpty && new Path(name).isAbsolute

  /** A database may have the name of a format. */
  private def isTable(spark: SparkSession, database: String, table: String): Boolean =
    spark.sessionState.catalog.databaseExists(database) &&
    spark.sessionState.catalog.tableExists(TableIdentifier(table, Some(database)))

  /** The name as SQL spells it. */
  def quoted(name: Seq[String]): String = name.map(quoteIfNeeded).mkString(".")

  /** Properties that Hive sets, which say nothing of a Delta table. */
  private val OfHive = Set(
    "COLUMN_STATS_ACCURATE",
    "EXTERNAL",
    "bucketing_version",
    "last_modified_by",
    "last_modified_time",
    "numFiles",
    "numPartitions",
    "numRows",
    "rawDataSize",
    "totalSize",
    "transient_lastDdlTime"
  )
}
