package io.deltaic.spark.skipping

import java.time.LocalDate
import java.util.Locale

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.DateTimeConstants.MICROS_PER_HOUR
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.CalendarInterval

/**
 * Functions that are monotone in their argument, increasing or decreasing, and never map a value to
 * null. Bounds of the argument then give bounds of the function, and it is null exactly where its
 * argument is.
 *
 * A function that fails or overflows outside of a range of arguments is one of these if it does
 * neither between the bounds. This follows if it does neither at the bounds, so it is evaluated
 * there in a mode that returns null instead, which means unknown.
 *
 * @param constant the value of an expression that does not depend on rows
 */
final private[skipping] class MonotoneFunctions(constant: Expression => Option[Literal]) {
  import MonotoneFunctions._

  /**
   * The argument of a function, and how its bounds are mapped; None for an unsupported function.
   * Functions whose name starts with `try_` map some values to null.
   */
  def unapply(e: Expression): Option[(Expression, Bounds => Option[Bounds])] = e match {
    case c: Cast if c.resolved && c.evalMode != EvalMode.TRY => Some((c.child, ofCast(c, _)))
    case Year(date) => Some((date, increasing(Year(_))))
    case TruncDate(date, unit) if isUnit(TruncDate(Literal(0, DateType), unit)) =>
      Some((date, increasing(TruncDate(_, unit))))
    case t @ TruncTimestamp(unit, time, _)
        if isUnit(t.copy(timestamp = Literal(0L, TimestampType))) =>
      Some((time, ofTruncation(t, unit, _)))
    case DateAdd(date, days) => shift(days).map(_ => (date, increasing(DateAdd(_, days))))
    case DateSub(date, days) => shift(days).map(_ => (date, increasing(DateSub(_, days))))
    case Substring(string, start, length) if isPrefix(start, length) =>
      Some((string, increasing(Substring(_, start, length))))
    case _ => arithmetic(e)
  }

  private def increasing(function: Expression => Expression): Bounds => Option[Bounds] =
    bounds => Some(bounds.copy(min = function(bounds.min), max = function(bounds.max)))

  private def decreasing(function: Expression => Expression): Bounds => Option[Bounds] =
    bounds => Some(bounds.copy(min = function(bounds.max), max = function(bounds.min)))

  /**
   * For a function that may fail or overflow: if it does neither at both bounds, it does neither at
   * any value between them.
   */
  private def checked(of: Bounds => Option[Bounds]): Bounds => Option[Bounds] = bounds =>
    of(bounds).map { found =>
      val both = And(IsNotNull(found.min), IsNotNull(found.max))
      def ifBoth(bound: Expression): Expression = CaseWhen(Seq(both -> bound))
      found.copy(min = ifBoth(found.min), max = ifBoth(found.max))
    }

  /** With a finite constant, so that no infinity becomes NaN, and not of decimals, which round. */
  private def arithmetic(e: Expression): Option[(Expression, Bounds => Option[Bounds])] = e match {
    case BinaryArithmetic(l, r) if l.dataType != r.dataType || !isNumber(e.dataType) => None
    case b: BinaryArithmetic if b.evalMode == EvalMode.TRY => None
    case a: Add =>
      operand(a.right)
        .map(n => (a.left, increasing(b => a.copy(b, n, Quiet))))
        .orElse(operand(a.left).map(n => (a.right, increasing(b => a.copy(n, b, Quiet)))))
        .map(checked)
    case s: Subtract =>
      operand(s.right)
        .map(n => (s.left, increasing(b => s.copy(b, n, Quiet))))
        .orElse(operand(s.left).map(n => (s.right, decreasing(b => s.copy(n, b, Quiet)))))
        .map(checked)
    case m: Multiply =>
      operand(m.right).map(m.left -> _)
        .orElse(operand(m.left).map(m.right -> _))
        .filter { case (_, n) => sign(n) != 0 }
        .map { case (column, n) => (column, scaled(n, b => m.copy(b, n, Quiet))) }
        .map(checked)
    case d: Divide =>
      operand(d.right).filter(sign(_) != 0)
        .map(n => (d.left, scaled(n, b => d.copy(b, n, Quiet))))
        .map(checked)
    case d: IntegralDivide =>
      operand(d.right).filter(sign(_) > 0)
        .map(n => (d.left, increasing(b => d.copy(b, n, Quiet))))
        .map(checked)
    case m: UnaryMinus if isNumber(m.dataType) =>
      val zero = Literal.default(m.dataType)
      Some(checked((m.child, decreasing(Subtract(zero, _, Quiet)))))
    case _ => None
  }

  private def checked(
      function: (Expression, Bounds => Option[Bounds])
  ): (Expression, Bounds => Option[Bounds]) = function._1 -> checked(function._2)

  private def scaled(by: Literal, function: Expression => Expression): Bounds => Option[Bounds] =
    if (sign(by) > 0) increasing(function) else decreasing(function)

  private def isNumber(dataType: DataType): Boolean = dataType match {
    case _: DecimalType => false
    case _: NumericType => true
    case _ => false
  }

  private def isWhole(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType => true
    case _ => false
  }

  private def operand(e: Expression): Option[Literal] = constant(e).filter { literal =>
    literal.value match {
      case d: Double => !d.isNaN && !d.isInfinite
      case f: Float => !f.isNaN && !f.isInfinite
      case value => value != null && isNumber(literal.dataType)
    }
  }

  private def sign(literal: Literal): Double = literal.value match {
    case number: Number => math.signum(number.doubleValue)
    case _ => 0
  }

  /**
   * A number of days that does not move dates of four-digit years, the only ones in statistics, out of the range of
   * dates.
   */
  private def shift(days: Expression): Option[Literal] = constant(days).filter { literal =>
    literal.value match {
      case number: Number => math.abs(number.longValue) <= 100000000L
      case _ => false
    }
  }

  /** A string that is not a unit makes the function null for every value. */
  private def isUnit(truncationOfSomething: Expression): Boolean =
    constant(truncationOfSomething).exists(_.value != null)

  /** The first characters of a string. */
  private def isPrefix(start: Expression, length: Expression): Boolean =
    (constant(start), constant(length)) match {
      case (Some(Literal(0 | 1, IntegerType)), Some(Literal(n: Int, IntegerType))) => n >= 0
      case _ => false
    }

  private def ofCast(cast: Cast, bounds: Bounds): Option[Bounds] = {
    val plain = increasing(b => cast.withNewChildren(Seq(b)))
    (cast.child.dataType, cast.dataType) match {
      case (ByteType | ShortType | IntegerType | LongType, FloatType | DoubleType) => plain(bounds)
      case (_: DecimalType, FloatType | DoubleType) => plain(bounds)
      case (from: NumericType, to: NumericType) if Cast.canUpCast(from, to) => plain(bounds)
      case (from, to) if isWhole(from) && isWhole(to) =>
        checked(increasing(Cast(_, to, cast.timeZoneId, EvalMode.TRY)))(bounds)
      case (DateType, TimestampType | TimestampNTZType) => plain(bounds)
      case (TimestampNTZType, DateType) => plain(bounds)
      case (TimestampType, DateType) =>
        plain(bounds).map(b =>
          b.copy(min = DateAdd(b.min, Literal(-1)), max = DateAdd(b.max, Literal(1)))
        )
      case (DateType, to: StringType) if to == StringType =>
        plain(bounds).map(inFourDigits(bounds, _))
      // Around a gap, the order of local times is not the order of their instants.
      case _ => None
    }
  }

  /** Only dates with four-digit years sort the same as strings: other years begin with a sign. */
  private def inFourDigits(dates: Bounds, strings: Bounds): Bounds = {
    val inOrder = And(
      GreaterThanOrEqual(dates.min, FirstOfFourDigits),
      LessThanOrEqual(dates.max, LastOfFourDigits)
    )
    def ifInOrder(bound: Expression): Expression = CaseWhen(Seq(inOrder -> bound))
    strings.copy(min = ifInOrder(strings.min), max = ifInOrder(strings.max))
  }

  /**
   * Truncation to a day or more uses the local date, to a minute or an hour the local time. Where
   * the clock changes, the result may be off by the change, which is never more than a day;
   * truncation to a second or less does not depend on the zone.
   */
  private def ofTruncation(
      truncation: TruncTimestamp,
      unit: Expression,
      bounds: Bounds
  ): Option[Bounds] = {
    val zone = truncation.timeZoneId
    def on(instant: Expression): Expression = truncation.copy(timestamp = instant)
    def hoursFrom(instant: Expression, hours: Long): Expression = TimestampAddInterval(
      instant,
      Literal(new CalendarInterval(0, 0, hours * MICROS_PER_HOUR), CalendarIntervalType),
      zone
    )
    def daysFrom(instant: Expression, days: Int): Expression =
      Cast(DateAdd(Cast(instant, DateType, zone), Literal(days)), TimestampType, zone)
    constant(unit).map(_.value.toString.toUpperCase(Locale.ROOT)).map {
      case "MICROSECOND" | "MILLISECOND" | "SECOND" =>
        bounds.copy(min = on(bounds.min), max = on(bounds.max))
      case "MINUTE" | "HOUR" =>
        bounds.copy(min = hoursFrom(bounds.min, -25), max = hoursFrom(bounds.max, 25))
      case _ =>
        bounds.copy(min = on(daysFrom(bounds.min, -1)), max = on(daysFrom(bounds.max, 1)))
    }
  }
}

private object MonotoneFunctions {

  /** Returns null where the function would fail or overflow. */
  val Quiet: NumericEvalContext = NumericEvalContext(EvalMode.TRY)

  private val FirstOfFourDigits = day(LocalDate.of(0, 1, 1))
  private val LastOfFourDigits = day(LocalDate.of(9999, 12, 31))

  private def day(date: LocalDate): Literal = Literal(date.toEpochDay.toInt, DateType)
}
