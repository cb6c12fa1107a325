package io.deltaic.spark.catalog.definition

import java.io.FileNotFoundException

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.catalog.{
  CatalogStorageFormat,
  CatalogTable,
  CatalogTableType,
  CatalogUtils
}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{
  Identifier,
  SupportsV1OverwriteWithSaveAsTable,
  TableCatalog,
  TableInfo
}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.deltaic.{SchemaInternals, SessionInternals, WriteInternals}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.log.FileNames
import io.deltaic.protocol.DeltaicException
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.catalog.{CreateStatement, StagedWriteTable, TableLocation}
import io.deltaic.spark.commit.{CommandRequest, Message, OperationInfo, RequestedDefinition}
import io.deltaic.spark.rowlevel.RowReplacement
import io.deltaic.spark.schema.{ConditionResolver, SchemaChecks, TableConditions, TableSchema}
import io.deltaic.spark.util.Json
import io.deltaic.spark.write.{
  PropertyOptions,
  Replaced,
  WriteFlags,
  WriteIntent,
  WriteTarget,
  WriteTransaction
}

/**
 * One `CREATE TABLE`, `REPLACE TABLE` or their `AS SELECT` forms: the location of the table, its
 * first commit, and its entry in the session catalog.
 *
 * @param statement `CREATE TABLE`, which requires a location without a table, `REPLACE TABLE` or
 *   `CREATE OR REPLACE TABLE`, which remove all files of an existing table
 */
private[spark] final class TableCreation(
    spark: SparkSession,
    identifier: Identifier,
    info: TableInfo,
    statement: String
) {
  private val properties = info.properties
  private val partitions = info.partitions
  private val schema = ColumnDefinitions.schema(spark, info.columns)
  private val declared = properties.asScala.toMap
  private val path = TableLocation.pathOf(identifier)
  private val name = TableIdentifier(identifier.name, identifier.namespace.headOption)
  private val catalog = spark.sessionState.catalog

  /** The catalog entry of a table that is replaced, which keeps its location. */
  private val entry: Option[CatalogTable] = Option.when(
    statement != CreateStatement.Create && path.isEmpty && catalog.tableExists(name)
  )(catalog.getTableMetadata(name))

  if (path.isEmpty && entry.isEmpty) SessionInternals.requireRegistrable(spark, name)

  private val external = path.isDefined || entry.fold(
    declared.contains(TableCatalog.PROP_LOCATION)
  )(_.tableType == CatalogTableType.EXTERNAL)

  private val location: String = path
    .orElse(declared.get(TableCatalog.PROP_LOCATION))
    .getOrElse(CatalogUtils.URIToString(
      entry.flatMap(_.storage.locationUri).getOrElse(catalog.defaultTablePath(name))
    ))

  val log: DeltaLog = TableLocation.log(spark, location)

  if (path.isDefined) declared.get(TableCatalog.PROP_LOCATION).foreach(requireSame)

  entry.foreach(requireReplaceable)

  SchemaChecks.requireNewNames(log.table.toString, schema.fieldNames.toSeq)

  requireReplacesColumns(
    new CaseInsensitiveStringMap(declared.collect {
      case (key, value) if key.startsWith(TableCatalog.OPTION_PREFIX) =>
        key.stripPrefix(TableCatalog.OPTION_PREFIX) -> value
    }.asJava)
  )

  private val clusterBy: Option[Seq[Seq[String]]] =
    partitions.toSeq.flatMap(SchemaInternals.clusteringColumns(_)).headOption

  private val partitionColumns: Seq[String] = partitions.toSeq.collect {
    case identity if identity.name == "identity" && isTopLevel(identity) =>
      identity.references.head.fieldNames.head
    case other if SchemaInternals.clusteringColumns(other).isEmpty =>
      throw DeltaicException(
        "DELTAIC_PARTITION_TRANSFORM",
        Map("table" -> log.table.toString, "transform" -> other.describe)
      )
  }

  /** Spark also passes options as properties; of these, only table properties are retained. */
  private val specified: Map[String, String] = declared.removedAll(
    Seq(
      TableCatalog.PROP_PROVIDER,
      TableCatalog.PROP_LOCATION,
      TableCatalog.PROP_COMMENT,
      TableCatalog.PROP_OWNER,
      TableCatalog.PROP_EXTERNAL,
      TableCatalog.PROP_IS_MANAGED_LOCATION,
      TableCreation.PathOption
    )
  ).filterNot { case (key, _) =>
    val isOption = declared.contains(TableCatalog.OPTION_PREFIX + key)
    key.startsWith(TableCatalog.OPTION_PREFIX) || isOption && !PropertyOptions.isProperty(key)
  }

  /** Properties may define constraints, as in delta-spark. */
  private val (constraintProperties, tableProperties) =
    specified.partition { case (key, _) => TableConditions.isConstraint(key) }

  private val constraints: Map[String, String] = ConstraintProperties.joined(
    log.table.toString,
    ColumnDefinitions.constraints(log.table.toString, info),
    constraintProperties
  )

  /** @param columns of the table; for CREATE TABLE LIKE, those of the source table */
  private def requireConditions(columns: StructType): Unit = constraints.foreach {
    case (name, condition) =>
      new ConditionResolver(spark, log.table.toString, columns)
        .checkNew(s"CHECK constraint $name", condition)
  }

  /**
   * Commits an empty table. An existing table at the location is registered as it is.
   *
   * @param like the table whose definition is copied, extended by the statement
   */
  def create(like: Option[Snapshot] = None): Unit = {
    requireConditions(like.fold(schema)(TableSchema.of(_).all))
    requireUnusedLocation()
    val arguments = Seq(
      "table" -> log.table.toString,
      "definition" -> definition(tableProperties, schema).json,
      "isManaged" -> !external,
      "like" -> like.map { source =>
        Message.of("LikeTable")("table" -> source.table.toString, "version" -> source.version)
      }
    )
    val command = new PythonCommand(spark, log, "createTable")
    // A table that another writer creates first must match the statement.
    command.run(arguments, onLost = _ => command.runAgain(arguments))
    register()
  }

  /**
   * Commits a clone of another table.
   *
   * @param source the arguments of the command `cloneTable` about the source
   * @param isCopy whether a file at the location belongs to the clone, which was interrupted
   * @return the result of the statement as JSON
   */
  def cloneOf(source: Seq[(String, Any)], isCopy: Path => Boolean): String = {
    if (statement == CreateStatement.Create) requireNoTable()
    requireUnusedLocation(isCopy)
    val target = Seq(
      "table" -> log.table.toString,
      "replaces" -> (statement != CreateStatement.Create),
      "properties" -> specified
    )
    val rows = CommandRequest("cloneTable", target ++ source).rows(spark)
    register()
    rows
  }

  /** A table for the rows of a query. */
  def staged(): StagedWriteTable = {
    requireConditions(schema)
    val snapshot = Option.when(log.exists)(log.latest())
    if (statement == CreateStatement.Create) {
      requireNoTable()
      requireUnusedLocation()
    }
    val rows = ColumnDefinitions.ofRows(schema)
    def target(ofOptions: Map[String, String]): WriteTarget = {
      val asSelect =
        intent(s"$statement AS SELECT", ofOptions ++ tableProperties, rows)
      // The whole table is replaced, regardless of the partition overwrite mode.
      val replacing = Option.when(statement != CreateStatement.Create)(Replaced.Everything)
      WriteTarget(spark, log, snapshot, partitionColumns, asSelect, RowReplacement, replacing)
    }
    new StagedWriteTable(
      target,
      rows,
      properties,
      requireReplacesColumns,
      () => commitReplacement(snapshot),
      () => register()
    )
  }

  /**
   * A statement that replaces a table always replaces its columns: `overwriteSchema=false` contradicts it.
   * `saveAsTable`, which Spark also plans as a replacement, may have it if the table does not exist.
   */
  private def requireReplacesColumns(options: CaseInsensitiveStringMap): Unit =
    if (
      statement != CreateStatement.Create &&
      !options.containsKey(SupportsV1OverwriteWithSaveAsTable.OPTION_NAME)
    )
      Option(options.get(WriteFlags.OverwriteSchema))
        .filterNot(WriteFlags.isTrue(WriteFlags.OverwriteSchema, _)).foreach { value =>
          throw DeltaicException(
            "DELTAIC_INVALID_WRITE_OPTION",
            Map(
              "option" -> s"overwriteSchema of $statement",
              "value" -> value,
              "valid" -> "true, because the statement always replaces the columns"
            )
          )
        }

  /** A path is the location of the table; a LOCATION can only repeat it. */
  private def requireSame(specified: String): Unit = {
    val other = TableLocation.log(spark, specified).table
    if (other != log.table)
      throw DeltaicException(
        "DELTAIC_PATH_AND_LOCATION_DIFFER",
        Map("table" -> log.table.toString, "location" -> other.toString)
      )
  }

  private def requireReplaceable(entry: CatalogTable): Unit = {
    def differs(what: String, current: Any, requested: Any): Nothing = throw DeltaicException(
      "DELTAIC_REPLACED_TABLE_DIFFERS",
      Map(
        "table" -> entry.identifier.quotedString,
        "what" -> what,
        "current" -> current.toString,
        "requested" -> requested.toString
      )
    )
    val provider = entry.provider.getOrElse(entry.tableType.name)
    if (!TableLocation.isDeltaic(provider)) differs("provider", provider, TableLocation.provider)
    for (uri <- entry.storage.locationUri) {
      val current = TableLocation.log(spark, CatalogUtils.URIToString(uri)).table
      if (current != log.table) differs("location", current, log.table)
    }
  }

  private def requireNoTable(): Unit = if (log.exists)
    throw DeltaicException("DELTAIC_TABLE_ALREADY_EXISTS", Map("table" -> log.table.toString))

  /**
   * Foreign files in the directory of a table would be treated as its orphan files. What a failed statement
   * leaves is allowed: directories without files, and a log without a version.
   *
   * @param isAllowed whether another file is allowed
   */
  private def requireUnusedLocation(isAllowed: Path => Boolean = _ => false): Unit =
    if (!log.exists) {
      val files = log.table.getFileSystem(WriteInternals.hadoopConf(spark, Map.empty))
      def entries: Iterator[FileStatus] =
        try files.listStatus(log.table).iterator
        catch { case _: FileNotFoundException => Iterator.empty }
      // The listing stops at the first file.
      val found = entries.filter(_.getPath.getName != FileNames.LogDirectory).flatMap { entry =>
        if (entry.isFile) Iterator.single(entry.getPath)
        else {
          val below = files.listFiles(entry.getPath, true)
          Iterator.continually(below).takeWhile(_.hasNext).map(_.next().getPath)
        }
      }.find(!isAllowed(_))
      found.foreach { file =>
        throw DeltaicException(
          "DELTAIC_LOCATION_NOT_EMPTY",
          Map(
            "table" -> log.table.toString,
            "file" -> file.toString.stripPrefix(s"${log.table}/")
          )
        )
      }
    }

  private def isTopLevel(transform: Transform): Boolean =
    transform.references.headOption.exists(_.fieldNames.length == 1)

  private def commitReplacement(snapshot: Option[Snapshot]): Unit = {
    val replace = intent(statement, tableProperties, schema).copy(mode = "overwrite")
    new WriteTransaction(spark, log, snapshot, replace).commitWithoutRows()
  }

  private def intent(
      operation: String,
      properties: Map[String, String],
      columns: StructType
  ): WriteIntent = WriteIntent(
    OperationInfo(
      operation,
      Map(
        "isManaged" -> (!external).toString,
        "description" -> declared.getOrElse(TableCatalog.PROP_COMMENT, null),
        "partitionBy" -> Json.of(partitionColumns).toString,
        "clusterBy" -> Json.of(clusterBy.getOrElse(Nil).map(UnresolvedAttribute(_).name)).toString,
        "properties" -> Json.of(properties ++ constraintProperties).toString
      ),
      options = Map("overwriteschema" -> "true")
    ),
    mode = "append",
    definition(properties, columns)
  )

  private def definition(
      properties: Map[String, String],
      columns: StructType
  ): RequestedDefinition =
    RequestedDefinition(
      Some(columns),
      partitionColumns,
      properties,
      constraints,
      clusterBy,
      declared.get(TableCatalog.PROP_COMMENT)
    )

  /**
   * Registers the table in the session catalog, without schema or properties: the log is authoritative,
   * and a copy would become stale.
   */
  private def register(): Unit =
    if (path.isEmpty && !catalog.tableExists(name))
      SessionInternals.register(
        spark,
        CatalogTable(
          identifier = name,
          tableType = if (external) CatalogTableType.EXTERNAL else CatalogTableType.MANAGED,
          storage = CatalogStorageFormat.empty.copy(locationUri = Some(log.table.toUri)),
          schema = new StructType(),
          provider = Some(TableLocation.provider)
        )
      )
}

private[spark] object TableCreation {

  /** The option that Spark converts to the location. */
  private val PathOption = "path"
}
