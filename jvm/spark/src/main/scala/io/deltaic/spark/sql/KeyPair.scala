package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  Cast,
  EqualTo,
  EvalMode,
  Expression,
  PredicateHelper
}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
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
  def isUsable: Boolean = own.deterministic && other.deterministic && (other.dataType match {
    case _: NumericType | DateType | TimestampType | TimestampNTZType | StringType => true
    case _ => false
  })

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
  def equated(condition: Expression, table: LogicalPlan, source: LogicalPlan): Seq[KeyPair] = {
    def isOf(plan: LogicalPlan, key: Expression): Boolean =
      key.references.nonEmpty && key.references.subsetOf(plan.outputSet)
    splitConjunctivePredicates(condition).collect {
      case EqualTo(own, other) if isOf(table, own) && isOf(source, other) => KeyPair(own, other)
      case EqualTo(other, own) if isOf(table, own) && isOf(source, other) => KeyPair(own, other)
    }.filter(_.isUsable)
  }

  private val integral: Set[DataType] = Set(ByteType, ShortType, IntegerType, LongType)
}
