package io.deltaic.spark.connect

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Row}

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.PythonApi
import io.deltaic.spark.catalog.TableLocation
import io.deltaic.spark.catalog.definition.PythonCommand
import io.deltaic.spark.sql.command.{
  CommandInPython,
  DescribeCommand,
  DropFeatureCommand,
  TableAtPath,
  TableToDescribe
}
import io.deltaic.spark.util.Json

/** The methods of `DeltaTable` that take no Columns. Each runs the command of the SQL statement, and returns its result. */
private[connect] object TableCalls {

  def isDeltaTable(spark: SparkSession, path: String): DataFrame =
    oneRow(spark, "is_delta_table BOOLEAN", PythonApi.isDeltaTable(spark, path))

  /** The table's path and its name in the catalog. */
  def resolveName(spark: SparkSession, name: String): DataFrame = {
    val found = Json.parse(PythonApi.resolveName(spark, name))
    located(spark, found.get("path"), found.get("name"))
  }

  def convertToDelta(
      spark: SparkSession,
      identifier: String,
      partitioning: Option[String]
  ): DataFrame = {
    val found = Json.parse(PythonApi.convertToDelta(spark, identifier, partitioning.orNull))
    located(spark, found.get("path"), found.get("name"))
  }

  /** Creates or replaces a table from the definition of Python's `DeltaTableBuilder`; returns its location, if stated. */
  def createTable(spark: SparkSession, definition: ObjectNode): DataFrame = {
    val location = text(definition, "location").map(TableLocation.log(spark, _).table.toString)
    location.foreach(definition.put("location", _))
    PythonApi.createTable(spark, definition.toString)
    oneRow(spark, "location STRING", location.orNull)
  }

  def history(table: MessageTable, limit: Option[Long]): DataFrame = run(
    table,
    "history",
    DescribeCommand.of(
      DescribeCommand.History,
      TableAtPath(table.path),
      limit.map("limit" -> _).toMap
    )
  )

  def detail(table: MessageTable): DataFrame = {
    val parser = table.spark.sessionState.sqlParser
    val described = table.name.fold[LogicalPlan](TableAtPath(table.path)) { name =>
      TableToDescribe(parser.parseMultipartIdentifier(name), "DeltaTable.detail")
    }
    run(table, "detail", DescribeCommand.of(DescribeCommand.Detail, described, Map.empty))
  }

  /** @param version a number, or a string that is one */
  def restore(
      table: MessageTable,
      version: Option[String],
      timestamp: Option[String]
  ): DataFrame = {
    val asOf = version.map("version" -> _) ++ timestamp.map("timestamp" -> _)
    run(table, "restore", CommandInPython.of("restore", TableAtPath(table.path), asOf.toMap))
  }

  def generate(table: MessageTable, mode: String): DataFrame = {
    val command = CommandInPython.of("generate", TableAtPath(table.path), Map("mode" -> mode))
    run(table, "generate", command)
  }

  /** @param arguments see [[PythonApi.vacuum]] */
  def vacuum(table: MessageTable, arguments: ObjectNode): DataFrame =
    PythonApi.vacuum(table.spark, table.path, arguments.toString)

  def optimize(
      table: MessageTable,
      predicate: Option[String],
      zOrderBy: Seq[String],
      isFull: Boolean
  ): DataFrame =
    PythonApi.optimize(table.spark, table.path, predicate.orNull, zOrderBy.asJava, isFull)

  def purge(table: MessageTable, predicate: Option[String]): DataFrame =
    PythonApi.purge(table.spark, table.path, predicate.orNull)

  /** @param request a `CloneRequest` */
  def cloneTable(table: MessageTable, request: ObjectNode): DataFrame = {
    PythonApi.cloneTable(table.spark, table.path, request.toString)
    nothing(table.spark)
  }

  def upgradeProtocol(
      table: MessageTable,
      readerVersion: Option[Long],
      writerVersion: Option[Long],
      features: Seq[String]
  ): DataFrame = alter(
    table,
    "upgradeProtocol",
    "readerVersion" -> readerVersion,
    "writerVersion" -> writerVersion,
    "features" -> features
  )

  def dropFeature(
      table: MessageTable,
      feature: String,
      truncatesHistory: Boolean
  ): DataFrame = {
    val command = DropFeatureCommand(TableAtPath(table.path), feature, truncatesHistory)
    run(table, "dropFeatureSupport", command)
  }

  def domainMetadata(table: MessageTable): DataFrame = run(
    table,
    "domainMetadata",
    DescribeCommand.of("describeDomainMetadata", TableAtPath(table.path), Map.empty)
  )

  def setDomainMetadata(table: MessageTable, domain: String, configuration: String): DataFrame =
    alter(table, "setDomainMetadata", "domain" -> domain, "configuration" -> configuration)

  def removeDomainMetadata(table: MessageTable, domain: String): DataFrame =
    alter(table, "removeDomainMetadata", "domain" -> domain)

  /** Runs the method that a `deltaic.connect.TableCall` names, whose arguments are JSON. */
  def run(spark: SparkSession, call: WireMessage): DataFrame = {
    val arguments = Json.parse(call.string("arguments"))
    def optional(key: String) = text(arguments, key)
    def required(key: String) =
      optional(key).getOrElse(throw call.invalid(s"the argument $key is missing"))
    def number(key: String) = Option(arguments.get(key)).filter(_.isIntegralNumber).map(_.longValue)
    def flag(key: String) = arguments.path(key).asBoolean
    def strings(key: String) = Json.stringsIn(arguments.path(key))
    lazy val table = MessageTable.of(spark, call.message("table"))
    call.string("method") match {
      case "isDeltaTable" => isDeltaTable(table.spark, table.path)
      case "resolveName" => resolveName(spark, required("name"))
      case "convertToDelta" =>
        convertToDelta(spark, required("identifier"), optional("partitioning"))
      case "createTable" => createTable(spark, arguments)
      case "history" => history(table, number("limit"))
      case "detail" => detail(table)
      case "restore" => restore(table, optional("version"), optional("timestamp"))
      case "generate" => generate(table, required("mode"))
      case "vacuum" => vacuum(table, arguments)
      case "optimize" =>
        optimize(table, optional("predicate"), strings("zOrderBy"), flag("isFull"))
      case "purge" => purge(table, optional("predicate"))
      case "clone" => cloneTable(table, arguments)
      case "upgradeProtocol" =>
        val features = strings("features")
        upgradeProtocol(table, number("readerVersion"), number("writerVersion"), features)
      case "dropFeature" => dropFeature(table, required("feature"), flag("truncateHistory"))
      case "domainMetadata" => domainMetadata(table)
      case "setDomainMetadata" =>
        setDomainMetadata(table, required("domain"), required("configuration"))
      case "removeDomainMetadata" => removeDomainMetadata(table, required("domain"))
      case other => throw call.invalid(s"this version of Deltaic has no method $other")
    }
  }

  private def run(table: MessageTable, method: String, plan: LogicalPlan): DataFrame =
    JobInternals.calledAs(table.spark, s"DeltaTable.$method") {
      SessionInternals.run(table.spark, plan)
    }

  private def alter(table: MessageTable, command: String, arguments: (String, Any)*): DataFrame = {
    val log: DeltaLog = TableLocation.log(table.spark, table.path)
    TableLocation.requireExists(table.spark, log)
    val all = ("table" -> log.table.toString) +: arguments
    new PythonCommand(table.spark, log, command).run(all)
    nothing(table.spark)
  }

  private def located(spark: SparkSession, path: JsonNode, name: JsonNode): DataFrame =
    oneRow(spark, "path STRING, name STRING", path.textValue, name.textValue)

  private def text(arguments: ObjectNode, key: String): Option[String] =
    Option(arguments.get(key)).filter(_.isTextual).map(_.textValue)

  private def oneRow(spark: SparkSession, schema: String, values: Any*): DataFrame =
    spark.createDataFrame(java.util.List.of(Row(values: _*)), StructType.fromDDL(schema))

  /** The result of a command without one. */
  private def nothing(spark: SparkSession): DataFrame =
    spark.createDataFrame(java.util.List.of[Row](), new StructType())
}
