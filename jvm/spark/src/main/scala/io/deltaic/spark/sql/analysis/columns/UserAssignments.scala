package io.deltaic.spark.sql.analysis.columns

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.SQLConfHelper
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.toPrettySQL
import org.apache.spark.sql.deltaic.WriteCommandInternals

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.spark.sql.analysis.{PerRowValue, RowMetadata}

/**
 * Converts the assignments of an UPDATE or MERGE to the form that Spark's plans require.
 *
 * @param table its path, for errors
 * @param relation the table, as the statement sees it
 * @param evolves whether the statement may add columns
 * @param exactly whether a value that a cast would truncate is an error
 */
private[sql] final class UserAssignments(
    operation: String,
    table: String,
    relation: LogicalPlan,
    evolves: Boolean,
    exactly: Boolean
) extends SQLConfHelper {

  private val values = new AssignedValues(table, conf, mayLackFields = evolves, exactly = exactly)

  /** The assignments with values cast to the columns' types, which may be copied. */
  def fitted(assignments: Seq[Assignment]): Seq[Assignment] = assignments.map { set =>
    requireOfOneRow(set)
    val marked = RowMetadata.marked(relation)(set.value)
    values.fitted(set.copy(value = copyable(marked)))
  }

  /**
   * Wraps the smallest nondeterministic parts: they are computed for rows of other clauses, too, where
   * a cast around them may fail. A higher-order function is wrapped as a whole.
   */
  private def copyable(value: Expression): Expression = {
    def once(e: Expression) = PerRowValue(e, NamedExpression.newExprId)
    val parts =
      if (value.exists(_.isInstanceOf[LambdaFunction])) value
      else
        value.transformUp {
          case e if !e.deterministic && !e.exists(_.isInstanceOf[PerRowValue]) => once(e)
        }
    if (parts.deterministic) parts else once(value)
  }

  /** A value in its stored form, with the fields of structs in the column's order. */
  def shaped(column: Attribute, value: Expression): Expression =
    translated(WriteCommandInternals.shaped(column, value, evolves))

  /** The statement with an assignment to each column of the table. */
  def aligned(command: LogicalPlan): LogicalPlan =
    translated(WriteCommandInternals.aligned(command)) match {
      case update: UpdateTable => update.copy(assignments = update.assignments.map(required))
      case merge: MergeIntoTable =>
        def checked(action: MergeAction): MergeAction = action match {
          case update: UpdateAction => update.copy(assignments = update.assignments.map(required))
          case insert: InsertAction => insert.copy(assignments = insert.assignments.map(required))
          case other => other
        }
        merge.copy(
          matchedActions = merge.matchedActions.map(checked),
          notMatchedActions = merge.notMatchedActions.map(checked),
          notMatchedBySourceActions = merge.notMatchedBySourceActions.map(checked)
        )
      case other => other
    }

  private def required(set: Assignment): Assignment =
    set.copy(value = RequiredValue.naming(set.value, table))

  private def translated[A](body: => A): A =
    try body
    catch {
      case e: AnalysisException if UserAssignments.conditions.exists(e.getCondition.startsWith) =>
        val parameters = e.getMessageParameters.asScala
        val reason = parameters.get("errors").fold(e.getMessage)(_.stripPrefix("\n- "))
        val column = parameters.get("colName").orElse(UserAssignments.quoted.findFirstIn(reason))
        throw AssignedValues.refused(table, column.getOrElse("(several)"), reason, e)
    }

  private def requireOfOneRow(set: Assignment): Unit = set.value.foreach {
    case _: WindowExpression => throw notOfOneRow(set, "a window function")
    case _: AggregateExpression => throw notOfOneRow(set, "an aggregate function")
    case _: Generator => throw notOfOneRow(set, "a function that makes several rows of one")
    case _ =>
  }

  private def notOfOneRow(set: Assignment, kind: String): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_ASSIGNMENT_NOT_OF_ONE_ROW",
      Map(
        "operation" -> operation,
        "table" -> table,
        "column" -> AssignedValues.pathOf(set.key).mkString("."),
        "expression" -> toPrettySQL(set.value),
        "kind" -> kind
      )
    )
}

private object UserAssignments {

  /** Spark's error conditions for assignments that it cannot align. */
  private val conditions = Seq(
    "INCOMPATIBLE_DATA_FOR_TABLE",
    "DATATYPE_MISMATCH.INVALID_ROW_LEVEL_OPERATION_ASSIGNMENTS"
  )

  /** Matches a quoted column name in these errors. */
  private val quoted = "(?<=')[^']+(?=')".r
}
