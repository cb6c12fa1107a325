package org.apache.spark.sql.deltaic.merge

import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.expressions.aggregate.V2Aggregator
import org.apache.spark.sql.catalyst.expressions.objects.{Invoke, NewInstance, StaticInvoke}
import org.apache.spark.sql.catalyst.expressions.{
  Expression,
  UserDefinedExpression,
  UserDefinedGenerator
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.aggregate.TypedAggregateExpression
import org.apache.spark.sql.execution.datasources.HadoopFsRelation
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.types.ObjectType

/**
 * Checks whether expressions and plans are deterministic. It is stricter than Spark, which assumes
 * that a user-defined function is deterministic unless its author has declared otherwise, which few
 * do.
 */
object DeterminismCheck {

  /** Whether a row always gives the same value; subqueries are left to the caller. */
  def expression(evaluated: Expression): Boolean =
    evaluated.deterministic && !evaluated.exists(runsUserCode)

  /** Whether a node of a plan returns the same rows for the same input. */
  def node(plan: LogicalPlan): Boolean = plan match {
    case _: ObjectProducer | _: ObjectConsumer | _: TypedFilter | _: AppendColumns => false
    case _: ScriptTransformation | _: GlobalLimit | _: LocalLimit | _: Offset | _: Tail => false
    case _ => plan.expressions.forall(expression)
  }

  /**
   * Whether reading files that were listed once either returns the same rows or fails. Programs
   * often replace text files under the same name; Parquet and ORC files come from engines, which
   * give each file its own name.
   */
  def files(read: HadoopFsRelation): Boolean = {
    val options = new FileSourceOptions(read.options)
    val isWrittenOnce = read.fileFormat match {
      case _: ParquetFileFormat | _: OrcFileFormat => true
      case _ => false
    }
    isWrittenOnce && !options.ignoreMissingFiles && !options.ignoreCorruptFiles
  }

  /** Whether a plan calls a user-defined function. */
  def callsUser(plan: LogicalPlan): Boolean =
    plan.exists(_.expressions.exists(_.exists(runsUserCode)))

  private def runsUserCode(expression: Expression): Boolean = expression match {
    case _: UserDefinedExpression | _: UserDefinedGenerator => true
    case _: V2Aggregator[_, _] | _: TypedAggregateExpression => true
    case Invoke(target, _, _, _, _, _, _, _) =>
      target.dataType match {
        case ObjectType(called) => !isOfSpark(called)
        case _ => false
      }
    case call: StaticInvoke => !isOfSpark(call.staticObject)
    case made: NewInstance => !isOfSpark(made.cls)
    case _ => false
  }

  private def isOfSpark(called: Class[_]): Boolean =
    Seq("org.apache.spark.", "java.", "scala.").exists(called.getName.startsWith)
}
