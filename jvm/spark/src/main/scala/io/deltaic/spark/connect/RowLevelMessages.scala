package io.deltaic.spark.connect

import java.util.{List => JList, Locale}

import scala.jdk.CollectionConverters._

import org.apache.spark.connect.proto
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connect.planner.SparkConnectPlanner
import org.apache.spark.sql.deltaic.{ExpressionInternals, SessionInternals}
import org.apache.spark.sql.{Column, DataFrame, classic}

import io.deltaic.spark.{MergeStatement, RowLevelStatements}

/** DELETE, UPDATE and MERGE of a client. They have plans and expressions of Spark, which its planner translates. */
private[connect] final class RowLevelMessages(planner: SparkConnectPlanner) {
  import RowLevelMessages._

  /** @param message a `delta.connect.DeleteFromTable` */
  def delete(message: WireMessage): DataFrame =
    RowLevelStatements.delete(target(message.relation("target")), condition(message))

  /** @param message a `delta.connect.UpdateTable` */
  def update(message: WireMessage): DataFrame = {
    val (columns, values) = assignments(message)
    val rows = target(message.relation("target"))
    RowLevelStatements.update(rows, condition(message), columns, values)
  }

  /**
   * @param message a `delta.connect.MergeIntoTable`
   * @param transaction the application and the version under which it is committed at most once
   */
  def merge(message: WireMessage, transaction: Option[(String, Long)] = None): DataFrame = {
    val statement = RowLevelStatements.merge(
      target(message.relation("target")),
      dataFrame(planner.session, message.relation("source")),
      column(message.expression("condition"))
    )
    message.messages("matched_actions").foreach(matched(statement, _))
    message.messages("not_matched_actions").foreach(notMatched(statement, _))
    message.messages("not_matched_by_source_actions").foreach(notMatchedBySource(statement, _))
    if (message.boolean("with_schema_evolution")) statement.withSchemaEvolution()
    transaction.fold(statement.run()) { case (appId, version) => statement.runOnce(appId, version) }
  }

  private def matched(statement: MergeStatement, action: WireMessage): Unit = kind(action) match {
    case "update_action" =>
      val (columns, values) = assignments(action.message("update_action"))
      statement.matchedUpdate(condition(action), columns, values)
    case "update_star_action" => statement.matchedUpdateAll(condition(action))
    case "delete_action" => statement.matchedDelete(condition(action))
    case other => throw action.invalid(s"$other is no action for matched rows")
  }

  private def notMatched(statement: MergeStatement, action: WireMessage): Unit =
    kind(action) match {
      case "insert_action" =>
        val (columns, values) = assignments(action.message("insert_action"))
        statement.notMatchedInsert(condition(action), columns, values)
      case "insert_star_action" => statement.notMatchedInsertAll(condition(action))
      case other => throw action.invalid(s"$other is no action for rows that are not matched")
    }

  private def notMatchedBySource(statement: MergeStatement, action: WireMessage): Unit =
    kind(action) match {
      case "update_action" =>
        val (columns, values) = assignments(action.message("update_action"))
        statement.notMatchedBySourceUpdate(condition(action), columns, values)
      case "delete_action" => statement.notMatchedBySourceDelete(condition(action))
      case other =>
        throw action.invalid(s"$other is no action for rows that are not matched by the source")
    }

  private def kind(action: WireMessage): String = action.alternative(except = "condition")

  /** The rows to change, in a session with the file system settings of the table. */
  private def target(relation: proto.Relation): classic.DataFrame = {
    val scanned = scanIn(relation).map(MessageTable.of(planner.session, _))
    SessionInternals.classicRun(scanned.fold(planner.session)(_.spark), newest(relation))
  }

  /**
   * The plan of a table's newest version. Spark's planner keeps plans by the ids of relations, and the client sends one
   * relation for all changes of a `DeltaTable`: it would be the version that an earlier request has read.
   */
  private def newest(relation: proto.Relation): LogicalPlan = {
    val common = relation.getCommon
    val plan =
      if (relation.hasSubqueryAlias) {
        val alias = relation.getSubqueryAlias
        SubqueryAlias(alias.getAlias, newest(alias.getInput))
      } else {
        val withoutId = relation.toBuilder.setCommon(common.toBuilder.clearPlanId().build())
        planner.transformRelation(withoutId.build())
      }
    // Columns of the client's DataFrame name it.
    if (common.hasPlanId) SessionInternals.withPlanId(plan, common.getPlanId) else plan
  }

  private def dataFrame(spark: SparkSession, relation: proto.Relation): classic.DataFrame =
    SessionInternals.classicRun(spark, planner.transformRelation(relation))

  /** Null if there is none. */
  private def condition(message: WireMessage): Column =
    message.optionalExpression("condition").map(column).orNull

  private def assignments(message: WireMessage): (JList[String], JList[Column]) = {
    val found = message.messages("assignments")
    (
      found.map(assignment => columnName(assignment, assignment.expression("field"))).asJava,
      found.map(assignment => column(assignment.expression("value"))).asJava
    )
  }

  private def column(expression: proto.Expression): Column =
    ExpressionInternals.column(planner.transformExpression(expression))
}

private[connect] object RowLevelMessages {

  /** The table of a `delta.connect.Scan`, which may have an alias. */
  private def scanIn(relation: proto.Relation): Option[WireMessage] =
    if (relation.hasSubqueryAlias) scanIn(relation.getSubqueryAlias.getInput)
    else if (!relation.hasExtension) None
    else
      WireMessage.unpack(relation.getExtension.toByteArray, RelationMessage)
        .filter(_.has("scan")).map(_.message("scan").message("table"))

  /** As it was written: it may be the name of a nested field. */
  private def columnName(assignment: WireMessage, field: proto.Expression): String =
    if (field.hasUnresolvedAttribute) field.getUnresolvedAttribute.getUnparsedIdentifier
    else {
      val kind = field.getExprTypeCase.name.toLowerCase(Locale.ROOT)
      throw assignment.invalid(s"the field is a column's name, and not $kind")
    }

  val RelationMessage = "delta.connect.DeltaRelation"
}
