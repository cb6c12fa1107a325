package io.deltaic.spark.connect

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.connect.proto
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connect.common.DataTypeProtoConverter
import org.apache.spark.sql.connect.planner.SparkConnectPlanner
import org.apache.spark.sql.connect.plugin.CommandPlugin

import io.deltaic.spark.SessionTable
import io.deltaic.spark.util.Json

/**
 * Serves the messages of delta-spark's client that have no result. Set it as
 * `spark.connect.extensions.command.classes`.
 */
class DeltaicCommandPlugin extends CommandPlugin {
  import DeltaicCommandPlugin._

  override def process(packed: Array[Byte], planner: SparkConnectPlanner): Boolean = {
    val command = WireMessage.unpack(packed, CommandMessage)
    command.foreach(run(planner.session, _))
    command.isDefined
  }

  private def run(spark: SparkSession, command: WireMessage): Unit = {
    val kind = command.alternative()
    val message = command.message(kind)
    lazy val table = MessageTable.of(spark, message.message("table"))
    kind match {
      case "clone_table" => TableCalls.cloneTable(table, cloneRequest(message))
      case "vacuum_table" =>
        val hours = message.optionalDouble("retention_hours").map("retentionHours" -> _.toString)
        TableCalls.vacuum(table, Json.obj(hours.toSeq: _*))
      case "upgrade_table_protocol" =>
        TableCalls.upgradeProtocol(
          table,
          Some(message.long("reader_version")),
          Some(message.long("writer_version")),
          features = Nil
        )
      case "generate" => TableCalls.generate(table, message.string("mode"))
      case "create_delta_table" => TableCalls.createTable(spark, definition(message))
      case "add_feature_support" =>
        TableCalls.upgradeProtocol(table, None, None, Seq(message.string("feature_name")))
      case "drop_feature_support" =>
        val feature = message.string("feature_name")
        TableCalls.dropFeature(table, feature, message.boolean("truncate_history"))
    }
    ()
  }
}

object DeltaicCommandPlugin {
  private val CommandMessage = "delta.connect.DeltaCommand"

  private def cloneRequest(message: WireMessage): ObjectNode = {
    val target = message.string("target")
    Json.obj(
      "target" -> target,
      "isPath" -> SessionTable.isPath(target),
      "isShallow" -> message.boolean("is_shallow"),
      "replaces" -> message.boolean("replace"),
      "properties" -> message.stringMap("properties"),
      "version" -> message.optionalLong("version").map(_.toString),
      "timestamp" -> message.optionalString("timestamp")
    )
  }

  /** As Python's `DeltaTableBuilder` sends it. */
  private def definition(message: WireMessage): ObjectNode = Json.obj(
    "verb" -> verb(message),
    "name" -> message.optionalString("table_name"),
    "location" -> message.optionalString("location"),
    "columns" -> message.messages("columns").map(column),
    "partitionedBy" -> message.strings("partitioning_columns"),
    "clusterBy" -> message.strings("clustering_columns"),
    "comment" -> message.optionalString("comment"),
    "properties" -> message.stringMap("properties")
  )

  private def verb(message: WireMessage): String = message.enumValue("mode") match {
    case "MODE_CREATE" => "CREATE TABLE"
    case "MODE_CREATE_IF_NOT_EXISTS" => "CREATE TABLE IF NOT EXISTS"
    case "MODE_REPLACE" => "REPLACE TABLE"
    case "MODE_CREATE_OR_REPLACE" => "CREATE OR REPLACE TABLE"
    case other => throw message.invalid(s"$other does not say whether a table is created")
  }

  private def column(message: WireMessage): ObjectNode = {
    val identity = Option.when(message.has("identity_info")) {
      val info = message.message("identity_info")
      "identity" -> Json.obj(
        "start" -> info.long("start"),
        "step" -> info.long("step"),
        "allowExplicitInsert" -> info.boolean("allow_explicit_insert")
      )
    }
    val optional = message.optionalString("comment").map("comment" -> _) ++
      message.optionalString("generated_always_as").map("generatedAs" -> _) ++ identity
    Json.obj(
      Seq(
        "name" -> message.string("name"),
        dataType(message.dataType("data_type")),
        "nullable" -> message.boolean("nullable")
      ) ++ optional: _*
    )
  }

  private def dataType(sent: proto.DataType): (String, String) =
    if (sent.hasUnparsed) "typeSql" -> sent.getUnparsed.getDataTypeString
    else "typeJson" -> DataTypeProtoConverter.toCatalystType(sent).json
}
