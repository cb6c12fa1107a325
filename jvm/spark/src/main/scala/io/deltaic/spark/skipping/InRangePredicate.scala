package io.deltaic.spark.skipping

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{
  CodeGenerator,
  CodegenContext,
  ExprCode,
  ExprValue,
  FalseLiteral
}
import org.apache.spark.sql.catalyst.expressions.{BinaryExpression, Expression, Predicate}
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types.DataType

/** Constants of one type, none of them null, in Catalyst's order. */
final private[skipping] class SortedValues(val dataType: DataType, values: Iterable[Any])
    extends Serializable {
  private val ordering: Ordering[Any] = TypeUtils.getInterpretedOrdering(dataType)
  private val sorted: Array[Any] = values.toArray.sorted(ordering)

  /** Whether one of the constants is in [min, max]; null means that side has no bound. */
  def anyInRange(min: Any, max: Any): Boolean = {
    val first = if (min == null) 0 else firstAtLeast(min)
    first < sorted.length && (max == null || ordering.lteq(sorted(first), max))
  }

  private def firstAtLeast(min: Any): Int = {
    var low = 0
    var high = sorted.length
    while (low < high) {
      val middle = (low + high) >>> 1
      if (ordering.lt(sorted(middle), min)) low = middle + 1 else high = middle
    }
    low
  }

  override def toString: String = sorted.mkString("{", ", ", "}")
}

/**
 * True if one of `values` is between `min` and `max`, inclusive. A null bound is no limit; the result is never null.
 */
final private[skipping] case class InRangePredicate(
    min: Expression,
    max: Expression,
    values: SortedValues
) extends BinaryExpression
    with Predicate {
  override def left: Expression = min
  override def right: Expression = max
  override def nullable: Boolean = false

  override def eval(input: InternalRow): Any = values.anyInRange(min.eval(input), max.eval(input))

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val constants = ctx.addReferenceObj("values", values, classOf[SortedValues].getName)
    val lower = min.genCode(ctx)
    val upper = max.genCode(ctx)
    val lowerObject = ctx.freshName("lower")
    val upperObject = ctx.freshName("upper")
    ev.copy(
      code = code"""
        ${lower.code}
        Object $lowerObject = null;
        if (!${lower.isNull}) { $lowerObject = ${boxed(min, lower.value)}; }
        ${upper.code}
        Object $upperObject = null;
        if (!${upper.isNull}) { $upperObject = ${boxed(max, upper.value)}; }
        boolean ${ev.value} = $constants.anyInRange($lowerObject, $upperObject);""",
      isNull = FalseLiteral
    )
  }

  private def boxed(bound: Expression, value: ExprValue): String =
    if (CodeGenerator.isPrimitiveType(bound.dataType)) {
      s"${CodeGenerator.boxedType(bound.dataType)}.valueOf($value)"
    } else value.toString

  override protected def withNewChildrenInternal(
      newLeft: Expression,
      newRight: Expression
  ): InRangePredicate = copy(min = newLeft, max = newRight)
}
