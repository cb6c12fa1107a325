package io.deltaic.spark.connect

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{DataFrame, Row}

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.catalog.TableLocation
import io.deltaic.spark.catalog.definition.PythonCommand
import io.deltaic.spark.sql.command.{DescribeCommand, TableAtPath}
import io.deltaic.spark.util.Json
import io.deltaic.spark.{PythonApi, SessionTable}

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
  def createTable(spark: SparkSession, definition: ObjectNode): DataFrame =
    oneRow(spark, "location STRING", PythonApi.createTable(spark, definition.toString))

  def restore(
      table: SessionTable,
      version: Option[String],
      timestamp: Option[String]
  ): DataFrame = table.restore("restore", version, timestamp)

  /** @param arguments see [[PythonApi.vacuum]] */
  def vacuum(table: SessionTable, arguments: ObjectNode): DataFrame =
    PythonApi.vacuum(table.spark, table.path, arguments.toString)

  /** @param request a `CloneRequest` */
  def cloneTable(table: SessionTable, request: ObjectNode): DataFrame = {
    PythonApi.cloneTable(table.spark, table.path, request.toString)
    nothing(table.spark)
  }

  def generate(table: SessionTable, mode: String): DataFrame = {
    table.generate(mode)
    nothing(table.spark)
  }

  def upgradeProtocol(
      table: SessionTable,
      readerVersion: Option[Long],
      writerVersion: Option[Long],
      features: Seq[String]
  ): DataFrame = {
    table.upgradeProtocol(readerVersion, writerVersion, features)
    nothing(table.spark)
  }

  def dropFeature(
      table: SessionTable,
      feature: String,
      truncatesHistory: Boolean
  ): DataFrame = {
    table.dropFeature(feature, truncatesHistory)
    nothing(table.spark)
  }

  def domainMetadata(table: SessionTable): DataFrame =
    JobInternals.calledAs(table.spark, "DeltaTable.domainMetadata") {
      val command =
        DescribeCommand.of("describeDomainMetadata", TableAtPath(table.path), Map.empty)
      SessionInternals.run(table.spark, command)
    }

  def setDomainMetadata(table: SessionTable, domain: String, configuration: String): DataFrame =
    alter(table, "setDomainMetadata", "domain" -> domain, "configuration" -> configuration)

  def removeDomainMetadata(table: SessionTable, domain: String): DataFrame =
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
      case "history" => table.history(number("limit").map(_.min(Int.MaxValue).toInt))
      case "detail" => table.detail()
      case "restore" => restore(table, optional("version"), optional("timestamp"))
      case "generate" => generate(table, required("mode"))
      case "vacuum" => vacuum(table, arguments)
      case "optimize" =>
        table.optimize(optional("predicate"), strings("zOrderBy"), flag("isFull"))
      case "purge" => table.purge(optional("predicate"))
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

  private def alter(table: SessionTable, command: String, arguments: (String, Any)*): DataFrame = {
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
