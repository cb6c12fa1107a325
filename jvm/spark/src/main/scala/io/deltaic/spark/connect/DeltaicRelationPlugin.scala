package io.deltaic.spark.connect

import java.util.Optional

import org.apache.spark.connect.proto
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connect.common.DataTypeProtoConverter
import org.apache.spark.sql.connect.planner.SparkConnectPlanner
import org.apache.spark.sql.connect.plugin.RelationPlugin
import org.apache.spark.sql.deltaic.SessionInternals

import io.deltaic.spark.SessionTable
import io.deltaic.spark.connect.RowLevelMessages.RelationMessage

/**
 * Serves the messages of clients that have a result: those of delta-spark's client and of ours. Set it as
 * `spark.connect.extensions.relation.classes`.
 *
 * A message that changes a table is run when Spark translates it, which it does once for each request.
 */
class DeltaicRelationPlugin extends RelationPlugin {
  import DeltaicRelationPlugin._

  override def transform(
      packed: Array[Byte],
      planner: SparkConnectPlanner
  ): Optional[LogicalPlan] = {
    val result = WireMessage.unpack(packed, RelationMessage).map(ofRelation(_, planner))
      .orElse(WireMessage.unpack(packed, TableCall).map(TableCalls.run(planner.session, _)))
      .orElse(WireMessage.unpack(packed, MergeOnce).map(mergeOnce(_, planner)))
    Optional.ofNullable(result.map(SessionInternals.planOf).orNull)
  }

  private def ofRelation(relation: WireMessage, planner: SparkConnectPlanner): DataFrame = {
    val spark = planner.session
    val kind = relation.alternative()
    val message = relation.message(kind)
    lazy val table = MessageTable.of(spark, message.message("table"))
    lazy val rowLevel = new RowLevelMessages(planner)
    kind match {
      case "scan" => table.rows
      case "describe_history" => table.history(None)
      case "describe_detail" => table.detail()
      case "convert_to_delta" => convert(spark, message)
      case "restore_table" => restore(table, message)
      case "is_delta_table" => TableCalls.isDeltaTable(spark, message.string("path"))
      case "delete_from_table" => rowLevel.delete(message)
      case "update_table" => rowLevel.update(message)
      case "merge_into_table" => rowLevel.merge(message)
      case "optimize_table" =>
        val conditions = message.strings("partition_filters").map(filter => s"($filter)")
        table.optimize(
          Option.when(conditions.nonEmpty)(conditions.mkString(" AND ")),
          message.strings("zorder_columns"),
          isFull = false
        )
    }
  }

  private def restore(table: SessionTable, message: WireMessage): DataFrame = {
    val version = message.optionalLong("version").map(_.toString)
    message.alternative(except = "table") // It says which version.
    TableCalls.restore(table, version, message.optionalString("timestamp"))
  }

  private def mergeOnce(message: WireMessage, planner: SparkConnectPlanner): DataFrame = {
    val transaction = message.string("app_id") -> message.long("version")
    new RowLevelMessages(planner).merge(message.message("merge"), Some(transaction))
  }

  /** The client resolves the result as a name. */
  private def convert(spark: SparkSession, message: WireMessage): DataFrame = {
    val partitioning =
      if (message.has("partition_schema_struct")) Some(json(message))
      else message.optionalString("partition_schema_string")
    TableCalls.convertToDelta(spark, message.string("identifier"), partitioning)
      .selectExpr("coalesce(name, concat('delta.`', replace(path, '`', '``'), '`')) AS name")
  }

  private def json(message: WireMessage): String = {
    val schema: proto.DataType = message.dataType("partition_schema_struct")
    DataTypeProtoConverter.toCatalystType(schema).json
  }
}

object DeltaicRelationPlugin {
  private val TableCall = "deltaic.connect.TableCall"
  private val MergeOnce = "deltaic.connect.MergeOnce"
}
