package io.deltaic.spark

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.{DataFrame, SparkSession, classic}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.optimize.{OptimizeRequest, PurgeRequest}
import io.deltaic.spark.sql.command._
import io.deltaic.spark.util.Json

/**
 * A table to create or replace.
 *
 * @param verb such as `CREATE TABLE`
 * @param name in the catalog; it has a location if it has no name
 * @param columns how they are generated is in their metadata
 */
final case class TableDefinition(
    verb: String,
    name: Option[String],
    location: Option[String],
    columns: Seq[StructField],
    partitionedBy: Seq[String],
    clusterBy: Seq[String],
    comment: Option[String],
    properties: Map[String, String]
) {

  /** As Python's `DeltaTableBuilder` passes it. */
  private[spark] def json: ObjectNode = Json.obj(
    "verb" -> verb,
    "name" -> name,
    "location" -> location,
    "columns" -> columns.map { column =>
      val fields = Json.parse(StructType(Seq(column)).json).get("fields")
      Json.obj("field" -> fields.get(0).toString)
    },
    "partitionedBy" -> partitionedBy,
    "clusterBy" -> clusterBy,
    "comment" -> comment,
    "properties" -> properties
  )
}

/**
 * A table, and the statements of `DeltaTable` on it, for programs of the JVM. They are the commands that SQL and Python
 * run; [[RowLevelStatements]] has those that change rows.
 *
 * @param path of the table, as the user gave it or as the catalog has it
 * @param name in the catalog, if the table was found there
 * @param settings of the file system, for this table only
 */
final class SessionTable private (
    session: classic.SparkSession,
    val path: String,
    val name: Option[String],
    settings: Map[String, String]
) {

  /** The session, with the settings of the table. */
  private[spark] val spark: classic.SparkSession = SessionTable.withSettings(session, settings)

  private var first = Option.empty[classic.DataFrame]

  /**
   * The rows of the newest version. All DataFrames of this table have the columns of the first one while the table's
   * definition is the same, so that a column of one of them resolves in the others.
   */
  def rows: classic.DataFrame = withColumnsOfFirst(name match {
    case Some(known) => session.table(known)
    case None => session.read.options(settings).format("delta").load(path)
  })

  /** The rows as the target of a change. */
  def target: classic.DataFrame =
    if (settings.isEmpty) rows
    else withColumnsOfFirst(spark.read.format("delta").load(path))

  private def withColumnsOfFirst(df: DataFrame): classic.DataFrame = synchronized {
    val found = df.asInstanceOf[classic.DataFrame]
    val aligned = first.flatMap(known => Option(RowLevelStatements.withColumnsOf(known, found)))
      .map(_.asInstanceOf[classic.DataFrame])
    if (aligned.isEmpty) first = Some(found)
    aligned.getOrElse(found)
  }

  /** DESCRIBE DETAIL. */
  def detail(): DataFrame = run("detail") {
    val described = name.fold(atPath) { known =>
      TableToDescribe(SessionTable.parsed(spark, known), "DeltaTable.detail")
    }
    DescribeCommand.of(DescribeCommand.Detail, described, Map.empty)
  }

  /** DESCRIBE HISTORY; of all commits that the log still has if there is no limit. */
  def history(limit: Option[Int]): DataFrame = run("history") {
    DescribeCommand.of(DescribeCommand.History, atPath, limit.map("limit" -> _).toMap)
  }

  /** GENERATE. */
  def generate(mode: String): Unit = {
    run("generate")(CommandInPython.of("generate", atPath, Map("mode" -> mode)))
    ()
  }

  /** RESTORE to a version. */
  def restoreToVersion(version: Long): DataFrame =
    restore("restoreToVersion", Some(version.toString), None)

  /** RESTORE to the newest version at a timestamp, in the session's time zone unless it names another one. */
  def restoreToTimestamp(timestamp: String): DataFrame =
    restore("restoreToTimestamp", None, Some(timestamp))

  /** RESTORE to a version, or to a timestamp; the command requires exactly one of them. */
  private[spark] def restore(
      method: String,
      version: Option[String],
      timestamp: Option[String]
  ): DataFrame = run(method) {
    val asOf = version.map("version" -> _) ++ timestamp.map("timestamp" -> _)
    CommandInPython.of("restore", atPath, asOf.toMap)
  }

  /** VACUUM; with the retention of the table if none is given. Returns an empty DataFrame, as delta-spark does. */
  def vacuum(retentionHours: Option[Double]): DataFrame =
    vacuum(retentionHours.map(hours => "retentionHours" -> hours.toString).toMap)

  /**
   * @param arguments
   *   of the statement
   * @return
   *   the files with `dryRun`, else nothing
   */
  private[spark] def vacuum(arguments: Map[String, Any]): DataFrame = {
    val result = run("vacuum")(VacuumCommand.of(atPath, arguments))
    if (arguments.get("dryRun").exists(_.toString.toBoolean)) result else spark.emptyDataFrame
  }

  /**
   * OPTIMIZE.
   *
   * @param predicate selects partitions; none for all
   * @param zOrderBy names of columns; none to compact, or to cluster a clustered table
   */
  def optimize(predicate: Option[String], zOrderBy: Seq[String], isFull: Boolean): DataFrame =
    run("optimize") {
      val columns = zOrderBy.map(SessionTable.parsed(spark, _))
      RewriteTable.of(atPath, OptimizeRequest(predicate, isFull, columns))
    }

  /** REORG with PURGE, in the partitions that the predicate selects. */
  def purge(predicate: Option[String]): DataFrame =
    run("purge")(RewriteTable.of(atPath, PurgeRequest(predicate)))

  /** Upgrades the protocol to these versions. */
  def upgradeProtocol(readerVersion: Int, writerVersion: Int): Unit =
    upgradeProtocol(Some(readerVersion.toLong), Some(writerVersion.toLong), Nil)

  /** Adds a feature, and those that it requires, to the protocol. */
  def addFeature(feature: String): Unit = upgradeProtocol(None, None, Seq(feature))

  private[spark] def upgradeProtocol(
      readerVersion: Option[Long],
      writerVersion: Option[Long],
      features: Seq[String]
  ): Unit = {
    run("upgradeTableProtocol") {
      UpgradeProtocolCommand(atPath, readerVersion, writerVersion, features)
    }
    ()
  }

  /** ALTER TABLE ... DROP FEATURE. */
  def dropFeature(feature: String, truncatesHistory: Boolean): Unit = {
    run("dropFeatureSupport")(DropFeatureCommand(atPath, feature, truncatesHistory))
    ()
  }

  /**
   * CLONE.
   *
   * @param target a path if it is absolute or a URI, else a name
   * @param version or `timestamp`, of the source; the newest version if there is neither
   * @return the clone
   */
  def cloneTo(
      target: String,
      isShallow: Boolean,
      replaces: Boolean,
      properties: Map[String, String],
      version: Option[Long] = None,
      timestamp: Option[String] = None
  ): SessionTable = {
    val isPath = SessionTable.isPath(target)
    run("clone") {
      CloneTable.of(
        atPath,
        CloneRequest.of(
          spark,
          target,
          isPath,
          isShallow,
          replaces,
          properties,
          version.map(_.toString),
          timestamp
        )
      )
    }
    if (isPath) SessionTable.forPath(session, target, settings)
    else SessionTable.forName(session, target)
  }

  private def atPath: LogicalPlan = TableAtPath(path)

  private def run(method: String)(statement: => LogicalPlan): DataFrame =
    JobInternals.calledAs(spark, s"DeltaTable.$method")(SessionInternals.run(spark, statement))
}

object SessionTable {

  /** An absolute path, or a URI; anything else is a name. */
  private val AbsolutePath = "(?s)(/|[A-Za-z][A-Za-z0-9+.-]*:/).*".r

  private val FileSystemSettings =
    "the names of file system settings begin with fs. or dfs."

  /**
   * The table at a path.
   *
   * @param settings of the file system, whose names begin with `fs.` or `dfs.`
   */
  def forPath(
      session: SparkSession,
      path: String,
      settings: Map[String, String] = Map.empty
  ): SessionTable = {
    val table = at(classicSession(session, "DeltaTable.forPath"), path, settings)
    if (!PythonApi.isDeltaTable(table.spark, path))
      throw DeltaicException("DELTAIC_NOT_A_TABLE", Map("table" -> path))
    table
  }

  /** The same, whether or not there is a table. */
  private[spark] def at(
      spark: classic.SparkSession,
      path: String,
      settings: Map[String, String] = Map.empty
  ): SessionTable = {
    // The error has no values, which may be secrets.
    settings.keys.toSeq.sorted.find(key => !key.startsWith("fs.") && !key.startsWith("dfs."))
      .foreach { key =>
        throw DeltaicException(
          "DELTAIC_INVALID_ARGUMENT",
          Map("argument" -> "hadoopConf", "value" -> key, "reason" -> FileSystemSettings)
        )
      }
    new SessionTable(spark, path, None, settings)
  }

  /** The table of this name in the catalog; the name may be a path such as ``delta.`/data/t` ``. */
  def forName(session: SparkSession, name: String): SessionTable = {
    val spark = classicSession(session, "DeltaTable.forName")
    val resolved = Json.parse(PythonApi.resolveName(spark, name))
    new SessionTable(
      spark,
      resolved.required("path").textValue,
      Some(resolved.required("name").textValue),
      Map.empty
    )
  }

  def isDeltaTable(session: SparkSession, path: String): Boolean =
    PythonApi.isDeltaTable(classicSession(session, "DeltaTable.isDeltaTable"), path)

  /**
   * CONVERT TO DELTA.
   *
   * @param identifier as in the statement
   * @param partitioning the partition columns as DDL or JSON, if they are stated
   */
  def convert(
      session: SparkSession,
      identifier: String,
      partitioning: Option[String]
  ): SessionTable = {
    val spark = classicSession(session, "DeltaTable.convertToDelta")
    val found = Json.parse(PythonApi.convertToDelta(spark, identifier, partitioning.orNull))
    Option(found.get("name")).filter(_.isTextual) match {
      case Some(name) => forName(spark, name.textValue)
      case None => forPath(spark, found.required("path").textValue)
    }
  }

  /** Creates or replaces a table, and returns its location with its file system if one is stated. */
  def create(session: SparkSession, definition: TableDefinition): Option[String] = {
    val spark = classicSession(session, "DeltaTableBuilder.execute")
    Option(PythonApi.createTable(spark, definition.json.toString))
  }

  /** The session, if it is not one of Spark Connect, whose plans this JVM does not have. */
  def classicSession(session: SparkSession, what: String): classic.SparkSession = session match {
    case ours: classic.SparkSession => ours
    case _ => throw DeltaicException("DELTAIC_SPARK_CONNECT_UNSUPPORTED", Map("what" -> what))
  }

  private[spark] def isPath(target: String): Boolean = AbsolutePath.matches(target)

  private def parsed(spark: classic.SparkSession, name: String): Seq[String] =
    spark.sessionState.sqlParser.parseMultipartIdentifier(name)

  private def withSettings(
      spark: classic.SparkSession,
      settings: Map[String, String]
  ): classic.SparkSession =
    if (settings.isEmpty) spark
    else {
      val clone = SessionInternals.cloned(spark)
      settings.foreach { case (name, value) => clone.conf.set(name, value) }
      clone
    }
}
