package io.deltaic.spark.sql.analysis.merge

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
import org.apache.spark.sql.deltaic.merge.DeterminismCheck
import org.apache.spark.sql.types._

/**
 * An equality in the condition of a change, between an expression over columns of its table and one over its source.
 *
 * @param own the expression over the table
 * @param other the expression over the source
 */
private[sql] final case class KeyPair(own: Expression, other: Expression) {

  /** Whether values of the source can be pushed to a scan of the table. */
  def isColumn: Boolean = own.isInstanceOf[Attribute]

  /** Whether both are deterministic, and the type is hashed in joins and ordered in bounds as in comparisons. */
  def isUsable: Boolean =
    DeterminismCheck.expression(own) && DeterminismCheck.expression(
      other
    ) && (other.dataType match {
      case _: NumericType | DateType | TimestampType | TimestampNTZType | StringType => true
      case _ => false
    })

  /** Whether it can be evaluated on any row; a cast of a string to a number, for example, may fail. */
  def isTotal: Boolean = KeyPair.isTotal(own) && KeyPair.isTotal(other)

  /**
   * The pair with the column itself if it is only cast to a wider integral type: a number of the source that
   * the column cannot hold equals none of its values.
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

  /** The usable equalities of a join between its table and its source. */
  def equated(condition: Expression, table: LogicalPlan, source: LogicalPlan): Seq[KeyPair] =
    splitConjunctivePredicates(condition).collect {
      case EqualTo(own, other) if isOf(table, own) && isOf(source, other) => KeyPair(own, other)
      case EqualTo(other, own) if isOf(table, own) && isOf(source, other) => KeyPair(own, other)
    }.filter(_.isUsable)

  /** The conditions of a join on one of its sides alone. */
  def about(side: LogicalPlan, condition: Expression): Seq[Expression] =
    splitConjunctivePredicates(condition).filter(isOf(side, _))

  /** Whether it may filter rows before they are joined. */
  def isFilter(condition: Expression): Boolean =
    DeterminismCheck.expression(condition) && !SubqueryExpression.hasSubquery(condition)

  private def isOf(plan: LogicalPlan, part: Expression): Boolean =
    part.references.nonEmpty && part.references.subsetOf(plan.outputSet)

  private def isTotal(key: Expression): Boolean = key match {
    case _: Attribute => true
    case Cast(column: Attribute, wide, _, _) => Cast.canUpCast(column.dataType, wide)
    case _ => false
  }

  private val integral: Set[DataType] = Set(ByteType, ShortType, IntegerType, LongType)
}
