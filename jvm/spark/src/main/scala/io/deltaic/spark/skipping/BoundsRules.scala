package io.deltaic.spark.skipping

import org.apache.spark.sql.catalyst.expressions.Literal.FalseLiteral
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.spark.schema.LeafColumn

/**
 * An expression over one column. Every value that is neither null nor NaN is in [min, max].
 *
 * @param leaf the column; the expression is null exactly where the column is
 * @param mayHoldNaN whether values may be NaN, which is greater than every other value but may be missing from bounds
 */
final private[skipping] case class Bounds(
    leaf: LeafColumn,
    min: Expression,
    max: Expression,
    mayHoldNaN: Boolean
) {
  def dataType: DataType = min.dataType
}

sealed private[skipping] trait Comparison {

  /** The comparison that holds where this one is false. */
  def negated: Comparison

  /** The same comparison with its sides exchanged. */
  def flipped: Comparison
}
private[skipping] object Comparison {
  case object Equal extends Comparison {
    override def negated: Comparison = NotEqual
    override def flipped: Comparison = this
  }
  case object NotEqual extends Comparison {
    override def negated: Comparison = Equal
    override def flipped: Comparison = this
  }
  case object Less extends Comparison {
    override def negated: Comparison = GreaterOrEqual
    override def flipped: Comparison = Greater
  }
  case object LessOrEqual extends Comparison {
    override def negated: Comparison = Greater
    override def flipped: Comparison = GreaterOrEqual
  }
  case object Greater extends Comparison {
    override def negated: Comparison = LessOrEqual
    override def flipped: Comparison = Less
  }
  case object GreaterOrEqual extends Comparison {
    override def negated: Comparison = Less
    override def flipped: Comparison = LessOrEqual
  }

  def unapply(e: Expression): Option[(Expression, Comparison, Expression)] = e match {
    case EqualTo(l, r) => Some((l, Equal, r))
    case LessThan(l, r) => Some((l, Less, r))
    case LessThanOrEqual(l, r) => Some((l, LessOrEqual, r))
    case GreaterThan(l, r) => Some((l, Greater, r))
    case GreaterThanOrEqual(l, r) => Some((l, GreaterOrEqual, r))
    case _ => None
  }
}

/**
 * What must hold of a file's statistics if one of its rows satisfies a comparison.
 *
 * The soundness rule: a result is false only if no row that is valid in the file can satisfy the
 * comparison. True and null both mean that a row may satisfy it; missing statistics are null. No
 * rule requires tight bounds: every bound limits the physical rows, and therefore also the rows
 * that a deletion vector leaves.
 *
 * Constants are literals and not null.
 *
 * @param field the attribute that represents a field of a file
 */
final private[skipping] class BoundsRules(field: FileField => Expression) {

  /**
   * A row where the column is null. A null count of 0 rules it out, with tight and with wide
   * bounds.
   */
  def isNull(leaf: LeafColumn): Expression =
    GreaterThan(field(FileField.NullCount(leaf)), Literal(0L))

  /**
   * A row where the column is not null. It is ruled out when all physical records are null. Both
   * counts are of physical records then: a null count of the valid rows alone is smaller than the
   * physical count as soon as one is deleted, and a null count of a file with wide bounds means
   * something only when it equals that count (Protocol § Per-file Statistics).
   */
  def isNotNull(leaf: LeafColumn): Expression =
    Not(EqualTo(field(FileField.NullCount(leaf)), field(FileField.NumRecords)))

  def compare(bounds: Bounds, comparison: Comparison, constant: Literal): Expression = {
    val rule: Option[Expression] = comparison match {
      case Comparison.Equal => equal(bounds, constant)
      case Comparison.NotEqual => notEqual(bounds, constant)
      case Comparison.Less => Some(LessThan(bounds.min, constant))
      case Comparison.LessOrEqual => Some(LessThanOrEqual(bounds.min, constant))
      case Comparison.Greater => greater(bounds, constant)
      case Comparison.GreaterOrEqual => greaterOrEqual(bounds, constant)
    }
    withNotNull(bounds, rule)
  }

  /** Bounds do not cover NaN rows, so the upper one can be used only for other values. */
  private def equal(bounds: Bounds, constant: Literal): Option[Expression] =
    if (isNaN(constant)) None
    else Some(And(LessThanOrEqual(bounds.min, constant), LessThanOrEqual(constant, bounds.max)))

  /** If both bounds equal the constant, all rows do, except NaN rows. */
  private def notEqual(bounds: Bounds, constant: Literal): Option[Expression] =
    if (bounds.mayHoldNaN) None
    else Some(Not(And(EqualTo(bounds.min, constant), EqualTo(bounds.max, constant))))

  private def greater(bounds: Bounds, constant: Literal): Option[Expression] =
    if (bounds.mayHoldNaN) None else Some(GreaterThan(bounds.max, constant))

  private def greaterOrEqual(bounds: Bounds, constant: Literal): Option[Expression] =
    if (bounds.mayHoldNaN) None else Some(GreaterThanOrEqual(bounds.max, constant))

  /**
   * A row where two columns compare like this. Their values are within their bounds, in whatever
   * combination; a NaN on the greater side is above all values.
   */
  def compareColumns(left: Bounds, comparison: Comparison, right: Bounds): Expression =
    comparison match {
      case Comparison.Greater => compareColumns(right, Comparison.Less, left)
      case Comparison.GreaterOrEqual => compareColumns(right, Comparison.LessOrEqual, left)
      case _ =>
        val rule: Option[Expression] = comparison match {
          case Comparison.Equal =>
            val meet =
              And(LessThanOrEqual(left.min, right.max), LessThanOrEqual(right.min, left.max))
            Option.when(!left.mayHoldNaN || !right.mayHoldNaN)(meet)
          case Comparison.NotEqual =>
            val constant = And(EqualTo(left.min, left.max), EqualTo(right.min, right.max))
            val same = And(constant, EqualTo(left.min, right.min))
            Option.when(!left.mayHoldNaN && !right.mayHoldNaN)(Not(same))
          case Comparison.Less =>
            Option.when(!right.mayHoldNaN)(LessThan(left.min, right.max))
          case _ => Option.when(!right.mayHoldNaN)(LessThanOrEqual(left.min, right.max))
        }
        And(isNotNull(left.leaf), withNotNull(right, rule))
    }

  /** A row equal to one of the constants. */
  def in(bounds: Bounds, constants: Seq[Literal]): Expression = {
    val rule =
      if (constants.exists(isNaN)) None
      else Some(InRangePredicate(bounds.min, bounds.max, sorted(bounds, constants)))
    withNotNull(bounds, rule)
  }

  /**
   * A row that equals none of the constants: there is one unless all rows are the same one of them.
   */
  def notIn(bounds: Bounds, constants: Seq[Literal]): Expression = {
    val allEqual = And(
      EqualTo(bounds.min, bounds.max),
      InRangePredicate(bounds.min, bounds.max, sorted(bounds, constants))
    )
    withNotNull(bounds, if (bounds.mayHoldNaN) None else Some(Not(allEqual)))
  }

  /**
   * Strings that start with a prefix are those from the prefix on and below the one that follows
   * all of them.
   */
  def startsWith(bounds: Bounds, prefix: UTF8String): Expression = {
    val fromPrefix = GreaterThanOrEqual(bounds.max, Literal(prefix))
    withNotNull(
      bounds,
      after(prefix).map(end => And(LessThan(bounds.min, Literal(end)), fromPrefix))
    )
  }

  def startsNotWith(bounds: Bounds, prefix: UTF8String): Expression =
    if (prefix.numBytes == 0) FalseLiteral
    else {
      val before = LessThan(bounds.min, Literal(prefix))
      withNotNull(
        bounds,
        after(prefix).map(end => Or(before, GreaterThanOrEqual(bounds.max, Literal(end))))
      )
    }

  /** No comparison is satisfied by null. */
  private def withNotNull(bounds: Bounds, rule: Option[Expression]): Expression =
    rule.foldLeft(isNotNull(bounds.leaf))(And(_, _))

  private def sorted(bounds: Bounds, constants: Seq[Literal]): SortedValues =
    new SortedValues(bounds.dataType, constants.map(_.value))

  private def isNaN(constant: Literal): Boolean = constant.value match {
    case d: Double => d.isNaN
    case f: Float => f.isNaN
    case _ => false
  }

  /**
   * The least string above all that start with `prefix`: its last byte below 0xff, incremented.
   * None for no bytes.
   */
  private def after(prefix: UTF8String): Option[UTF8String] = {
    val bytes = prefix.getBytes
    val last = bytes.lastIndexWhere(_ != -1)
    if (last < 0) None
    else {
      val end = bytes.take(last + 1)
      end(last) = (end(last) + 1).toByte
      Some(UTF8String.fromBytes(end))
    }
  }
}
