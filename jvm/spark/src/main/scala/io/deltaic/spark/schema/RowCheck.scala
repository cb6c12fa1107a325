package io.deltaic.spark.schema

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/**
 * A condition that every row of a table must satisfy.
 *
 * @param name its name in errors, such as `CHECK constraint positive`
 * @param sql the condition as the table defines it
 * @param condition over the columns of a row to be written, by position
 * @param shown the columns it references, by name, as strings
 * @param error the error condition of a violation
 */
private[deltaic] final case class RowCheck(
    name: String,
    sql: String,
    condition: Expression,
    shown: Seq[(String, Expression)],
    error: String = "DELTAIC_CHECK_VIOLATED"
) {

  /** A condition that is null is violated (Protocol § Column Invariants, § CHECK Constraints). */
  def isTrue: Expression = EqualNullSafe(condition, TrueLiteral)
}

/** Refuses rows that violate a condition. One generated predicate evaluates all conditions. */
private[spark] final class RowChecks(table: String, checks: Seq[RowCheck], taskPartition: Int) {

  private val allTrue: BasePredicate = Predicate.create(checks.map(_.isTrue).reduce(And(_, _)))
  allTrue.initialize(taskPartition)

  def check(row: InternalRow): Unit = if (!allTrue.eval(row)) throw violation(row)

  private def violation(row: InternalRow): DeltaicThrowable = {
    val violated = checks.find(!isMet(_, row)).getOrElse(checks.head)
    val values = violated.shown.map { case (name, text) => s"$name = ${shown(text, row)}" }
    DeltaicException(
      violated.error,
      Map(
        "table" -> table,
        "constraint" -> violated.name,
        "expression" -> violated.sql,
        "row" -> (if (values.isEmpty) "(it names no column)" else values.mkString(", "))
      )
    )
  }

  private def isMet(check: RowCheck, row: InternalRow): Boolean = {
    val predicate = Predicate.createInterpreted(check.isTrue)
    predicate.initialize(taskPartition)
    predicate.eval(row)
  }

  private def shown(text: Expression, row: InternalRow): String = text.eval(row) match {
    case null => "null"
    case value: UTF8String if value.numChars > RowChecks.maxShownChars =>
      value.substring(0, RowChecks.maxShownChars).toString + "..."
    case value => value.toString
  }
}

private object RowChecks {

  /** Longer values would make an error message unreadable. */
  val maxShownChars = 200
}
