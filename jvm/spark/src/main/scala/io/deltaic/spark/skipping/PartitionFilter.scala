package io.deltaic.spark.skipping

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{NumericType, StringType}

import io.deltaic.spark.schema.SkippingSchema

/** Filters that can be evaluated on a file's partition values alone. */
private[skipping] object PartitionFilter {

  /** Whether `e` can be evaluated on the driver, on partition values and nothing else. */
  def matches(e: Expression, schema: SkippingSchema): Boolean =
    e.resolved && e.deterministic && !e.exists(needsMore(_, schema, e))

  private def needsMore(e: Expression, schema: SkippingSchema, whole: Expression): Boolean =
    e match {
      case a: AttributeReference => schema.partitionColumn(a).isEmpty
      case v: NamedLambdaVariable => !isBound(v, whole)
      case _: PlanExpression[_] | _: Unevaluable => true
      case _ => false
    }

  /** Whether the variable is bound by a lambda within `e`, not by one that contains `e`. */
  private def isBound(variable: NamedLambdaVariable, e: Expression): Boolean = e.exists {
    case lambda: LambdaFunction => lambda.arguments.exists(_.exprId == variable.exprId)
    case _ => false
  }

  /**
   * Whether `e` can be evaluated without error for all values of its columns. An unknown expression
   * may raise an error for some.
   */
  def neverFails(e: Expression): Boolean = {
    val safe = e match {
      case _: AttributeReference | _: Literal => true
      case _: And | _: Or | _: Not | _: IsNull | _: IsNotNull | _: IsNaN | _: Coalesce => true
      case _: BinaryComparison | _: In | _: InSet => true
      case _: StartsWith | _: EndsWith | _: Contains => true
      case c: Cast => isSafeCast(c)
      case _ => false
    }
    safe && e.children.forall(neverFails)
  }

  def isSafeCast(cast: Cast): Boolean = (cast.child.dataType, cast.dataType) match {
    case (from: NumericType, to: NumericType) => Cast.canUpCast(from, to)
    case (from: NumericType, to: StringType) => Cast.canUpCast(from, to)
    case _ => false
  }
}
