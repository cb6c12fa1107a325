package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.expressions.{
  And,
  AttributeReference,
  EqualNullSafe,
  Expression,
  IsNull,
  Literal,
  Not
}
import org.apache.spark.sql.connector.expressions.filter.{Predicate => V2Predicate}
import org.apache.spark.sql.connector.expressions.{Literal => V2Literal, NamedReference}
import org.apache.spark.sql.types.{BooleanType, DataType, NullType}

/** Converts the predicates of `INSERT OVERWRITE ... PARTITION (p = 1)` to Catalyst expressions. */
private[write] object PartitionPredicate {

  /** A condition over columns by name; the caller resolves their types. */
  def condition(predicate: V2Predicate): Option[Expression] =
    (predicate.name, predicate.children.toSeq) match {
      case ("=" | "<=>", Seq(reference: NamedReference, value: V2Literal[_])) =>
        Some(EqualNullSafe(column(reference, value.dataType), Literal(value.value, value.dataType)))
      case ("IS_NULL", Seq(reference: NamedReference)) => Some(IsNull(column(reference, NullType)))
      case ("BOOLEAN_EXPRESSION", Seq(reference: NamedReference)) =>
        Some(column(reference, BooleanType))
      case ("NOT", Seq(negated: V2Predicate)) => condition(negated).map(Not(_))
      case ("AND", Seq(left: V2Predicate, right: V2Predicate)) =>
        condition(left).flatMap(l => condition(right).map(And(l, _)))
      case _ => None
    }

  private def column(reference: NamedReference, dataType: DataType): Expression =
    AttributeReference(reference.fieldNames.head, dataType)()
}
