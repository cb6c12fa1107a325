package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{
  CodegenContext,
  ExprCode,
  FalseLiteral,
  JavaCode
}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.types.{DataType, IntegerType, NullType}

/**
 * One for every row. A filter that asks for more than zero leaves all rows in, and has Spark hand the keys
 * of a join's broadcast side to the scan of the other: `PartitionPruning` does so where the broadcast side
 * is filtered, since otherwise all keys are likely to be there. The source of a change has few of them,
 * with or without a filter.
 *
 * @param never keeps the optimizer from evaluating the filter on rows that are in the plan, which would
 *   take it out; nothing else evaluates it either
 */
final case class KeyMark(key: Expression, never: Expression) extends BinaryExpression {
  override def left: Expression = key
  override def right: Expression = never
  override def dataType: DataType = IntegerType
  override def nullable: Boolean = false
  override def foldable: Boolean = false
  override def prettyName: String = "deltaic_key"

  override def eval(input: InternalRow): Any = 1

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    ExprCode(FalseLiteral, JavaCode.literal("1", IntegerType))

  override protected def withNewChildrenInternal(
      newLeft: Expression,
      newRight: Expression
  ): KeyMark = copy(key = newLeft, never = newRight)
}

object KeyMark {

  /** The same rows, by whose keys the scan on the other side of a join is pruned if they are broadcast. */
  def filter(key: Expression, rows: LogicalPlan): Filter =
    Filter(GreaterThan(KeyMark(key, NeverEvaluated()), Literal(0)), rows)
}

final case class NeverEvaluated() extends LeafExpression with Unevaluable {
  override def dataType: DataType = NullType
  override def nullable: Boolean = true
}
