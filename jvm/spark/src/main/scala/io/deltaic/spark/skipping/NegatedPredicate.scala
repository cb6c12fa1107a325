package io.deltaic.spark.skipping

import org.apache.spark.sql.catalyst.expressions.Literal.{FalseLiteral, TrueLiteral}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{DateType, TimestampNTZType, TimestampType}

import io.deltaic.spark.schema.SkippingSchema

/**
 * A predicate for the rows that do not satisfy some conditions. If a file cannot contain such a
 * row, all its rows satisfy the conditions.
 *
 * A condition is not satisfied by a row if it is false, if it is null, or if it fails. Only
 * conditions that cannot fail, and whose nulls come from known columns, are analyzed: any other
 * condition may be unsatisfied for any row.
 */
private[skipping] object NegatedPredicate {

  /** @param conditions all of which a row must satisfy */
  def of(conditions: Seq[Expression], schema: SkippingSchema): Expression =
    conditions.map(ofOne(_, schema)).reduceOption(Or(_, _)).getOrElse(FalseLiteral)

  private def ofOne(condition: Expression, schema: SkippingSchema): Expression =
    // The condition itself is evaluated; an error is treated as unknown.
    if (PartitionFilter.matches(condition, schema)) Not(EqualNullSafe(condition, TrueLiteral))
    else if (!condition.resolved || !condition.deterministic) TrueLiteral
    else
      nullSources(condition, schema).fold[Expression](TrueLiteral) {
        _.distinct.map(IsNull(_)).foldLeft[Expression](Not(condition))(Or(_, _))
      }

  /**
   * Columns one of which is null wherever `e` is; none if `e` may be null for another reason, or fail.
   */
  private def nullSources(e: Expression, schema: SkippingSchema): Option[Seq[Expression]] = {
    def of(operands: Expression*): Option[Seq[Expression]] = {
      val found = operands.map(nullSources(_, schema))
      Option.when(found.forall(_.isDefined))(found.flatten.flatten)
    }
    e match {
      case p if PartitionFilter.matches(p, schema) =>
        Option.when(PartitionFilter.neverFails(p))(Seq(p))
      case Column(column) => Some(Seq(column))
      // Never null, whatever their operands are.
      case IsNull(operand) => of(operand).map(_ => Nil)
      case IsNotNull(operand) => of(operand).map(_ => Nil)
      case EqualNullSafe(l, r) => of(l, r).map(_ => Nil)
      case And(l, r) => of(l, r)
      case Or(l, r) => of(l, r)
      case Not(operand) => of(operand)
      case Comparison(l, _, r) => of(l, r)
      case In(operand, values) if values.nonEmpty && values.forall(isValue) => of(operand)
      case InSet(operand, values) if values.nonEmpty && !values.contains(null) => of(operand)
      case StartsWith(l, r) => of(l, r)
      case cast: Cast if keepsValues(cast) => of(cast.child)
      case Year(date) => of(date)
      case _ => None
    }
  }

  /** A column, or a field of one. */
  private object Column {
    def unapply(e: Expression): Option[Expression] = e match {
      case _: Attribute => Some(e)
      case GetStructField(Column(_), _, _) => Some(e)
      case _ => None
    }
  }

  private def isValue(e: Expression): Boolean = e match {
    case Literal(value, _) => value != null
    case _ => false
  }

  /** Whether the cast neither fails nor maps a value to null. */
  private def keepsValues(cast: Cast): Boolean = (cast.child.dataType, cast.dataType) match {
    case (TimestampType | TimestampNTZType, DateType) => true
    case _ => PartitionFilter.isSafeCast(cast)
  }
}
