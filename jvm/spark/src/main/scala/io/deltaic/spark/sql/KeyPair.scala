package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  Cast,
  EqualTo,
  EvalMode,
  Expression,
  PredicateHelper,
  SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.deltaic.Repeats
import org.apache.spark.sql.types._

/**
 * What a change equates: a column of its table, or what is made of columns, and something of a source.
 *
 * @param own of the table
 * @param other of the source
 */
private[sql] final case class KeyPair(own: Expression, other: Expression) {

  /** Whether a scan of the table can be told values to look for. */
  def isColumn: Boolean = own.isInstanceOf[Attribute]

  /** Types that a join hashes and bounds order as comparisons do. */
  def isUsable: Boolean =
    Repeats.expression(own) && Repeats.expression(other) && (other.dataType match {
      case _: NumericType | DateType | TimestampType | TimestampNTZType | StringType => true
      case _ => false
    })

  /** Whether it can be evaluated of any row, where a text that is no number fails to be cast to one. */
  def isTotal: Boolean = KeyPair.isTotal(own) && KeyPair.isTotal(other)

  /**
   * The column itself, where only its numbers are made wider to compare them: a number of the source that
   * the column cannot hold equals none of it.
   */
  def narrowed: KeyPair = own match {
    case Cast(column: Attribute, wide, _, _)
        if KeyPair.integral(wide) && KeyPair.integral(column.dataType) &&
        Cast.canUpCast(column.dataType, wide) =>
      KeyPair(column, Cast(other, column.dataType, None, EvalMode.TRY))
    case _ => this
  }
}

private[sql] object KeyPair extends PredicateHelper {

  /** What a join equates of its table and its source. */
  def equated(condition: Expression, table: LogicalPlan, source: LogicalPlan): Seq[KeyPair] =
    splitConjunctivePredicates(condition).collect {
      case EqualTo(own, other) if isOf(table, own) && isOf(source, other) => KeyPair(own, other)
      case EqualTo(other, own) if isOf(table, own) && isOf(source, other) => KeyPair(own, other)
    }.filter(_.isUsable)

  /** What a join says of one of its sides alone. */
  def about(side: LogicalPlan, condition: Expression): Seq[Expression] =
    splitConjunctivePredicates(condition).filter(isOf(side, _))

  /** Whether rows may be left out by it before they are joined. */
  def isFilter(condition: Expression): Boolean =
    Repeats.expression(condition) && !SubqueryExpression.hasSubquery(condition)

  private def isOf(plan: LogicalPlan, part: Expression): Boolean =
    part.references.nonEmpty && part.references.subsetOf(plan.outputSet)

  private def isTotal(key: Expression): Boolean = key match {
    case _: Attribute => true
    case Cast(column: Attribute, wide, _, _) => Cast.canUpCast(column.dataType, wide)
    case _ => false
  }

  private val integral: Set[DataType] = Set(ByteType, ShortType, IntegerType, LongType)
}
