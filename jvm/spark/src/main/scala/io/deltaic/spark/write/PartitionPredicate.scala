package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.expressions.{
  And,
  EqualNullSafe,
  Expression,
  IsNull,
  Literal,
  Not
}
import org.apache.spark.sql.connector.expressions.filter.{Predicate => V2Predicate}
import org.apache.spark.sql.connector.expressions.{Literal => V2Literal, NamedReference}

/** The conditions that `INSERT OVERWRITE ... PARTITION (p = 1)` yields, as Catalyst expressions. */
private[write] object PartitionPredicate {

  def isSupported(predicate: V2Predicate): Boolean =
    condition(predicate, _ => Literal.TrueLiteral).isDefined

  /** @param column the value of a partition column */
  def condition(
      predicate: V2Predicate,
      column: NamedReference => Expression
  ): Option[Expression] = (predicate.name, predicate.children.toSeq) match {
    case ("=" | "<=>", Seq(reference: NamedReference, value: V2Literal[_])) =>
      Some(EqualNullSafe(column(reference), Literal(value.value, value.dataType)))
    case ("IS_NULL", Seq(reference: NamedReference)) => Some(IsNull(column(reference)))
    case ("BOOLEAN_EXPRESSION", Seq(reference: NamedReference)) => Some(column(reference))
    case ("NOT", Seq(negated: V2Predicate)) => condition(negated, column).map(Not(_))
    case ("AND", Seq(left: V2Predicate, right: V2Predicate)) =>
      condition(left, column).flatMap(l => condition(right, column).map(And(l, _)))
    case _ => None
  }
}
