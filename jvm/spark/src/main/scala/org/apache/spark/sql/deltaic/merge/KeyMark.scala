package org.apache.spark.sql.deltaic.merge

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
 * Returns 1 for every row. A filter that this is greater than 0 selects all rows, and makes Spark
 * pass the keys of a join's broadcast side to the scan of the other side: `PartitionPruning` does
 * so only if the broadcast side is filtered, since otherwise all keys are likely to be present. The
 * source of a MERGE has few keys, with or without a filter.
 *
 * @param never prevents the optimizer from evaluating the filter on literal rows in the plan, which
 *   would remove it; it is never evaluated
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

  /** The same rows with a filter by which the scan on the other side of a join is pruned if the rows are broadcast. */
  def filter(key: Expression, rows: LogicalPlan): Filter =
    Filter(GreaterThan(KeyMark(key, NeverEvaluated()), Literal(0)), rows)
}

final case class NeverEvaluated() extends LeafExpression with Unevaluable {
  override def dataType: DataType = NullType
  override def nullable: Boolean = true
}
