package io.deltaic.spark.scan

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.CollationFactory
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * One generated partition column.
 *
 * @param value over `base` alone, in the column's type
 */
private[scan] final class Generated(
    val column: StructField,
    val value: Expression,
    val base: AttributeReference
) {
  import Generated._

  private val attribute = AttributeReference(column.name, column.dataType)()

  /** Whether the image depends on the zone of the session that computed it. */
  private val isLocal = value != base && value.exists(_.dataType == TimestampType)

  /** An instant made of a date, in a zone that nobody knows. */
  private val hasUnknownResult =
    column.dataType == TimestampType && base.dataType != TimestampType

  private val comparesAsItEquals = base.dataType match {
    case FloatType | DoubleType => false // -0.0 = 0.0, but they have different images
    case string: StringType => Generated.isBinary(string)
    case _ => true
  }

  def of(comparison: Comparison): Option[Expression] =
    if (hasUnknownResult) None
    else
      comparison match {
        case Exactly(v) => equal(v)
        case OneOf(values) =>
          val each = values.map(equal)
          if (each.isEmpty || each.exists(_.isEmpty)) None
          else Some(each.flatten.reduce(Or(_, _)))
        case AtMost(v) if ascends(value) => upper(v)
        case AtLeast(v) if ascends(value) => lower(v)
        case Absent =>
          image(Literal(null, base.dataType)).filterNot(isEmptyText).map(EqualNullSafe(
            attribute,
            _
          ))
        case _ => None
      }

  private def equal(v: Literal): Option[Expression] =
    if (!isLocal) {
      if (!comparesAsItEquals) None
      else image(v).filterNot(isEmptyText).map(EqualNullSafe(attribute, _))
    } else if (!ascends(value)) None
    else for (low <- lower(v); high <- upper(v)) yield And(low, high)

  private def upper(v: Literal): Option[Expression] =
    image(moved(v, +1)).map(resultMoved(_, +1)).filter(isBound)
      .map { bound =>
        val below = LessThanOrEqual(attribute, bound)
        if (bound.dataType.isInstanceOf[StringType]) Or(below, IsNull(attribute)) else below
      }

  /** Years beyond 9999 are written with a sign, which sorts before the digits. */
  private def lower(v: Literal): Option[Expression] =
    image(moved(v, -1)).map(resultMoved(_, -1)).filter(isBound).map { bound =>
      val above = GreaterThanOrEqual(attribute, bound)
      if (isFormatted) Or(above, LessThan(attribute, Literal("0"))) else above
    }

  /** An instant made of a local time is as far from UTC once more. */
  private def resultMoved(image: Literal, direction: Int): Literal =
    if (image.value != null && image.dataType == TimestampType) moved(image, direction) else image

  private def isFormatted: Boolean = value.exists(_.isInstanceOf[DateFormatClass])

  /** A partition has no empty string: it is null there, and so the smallest is no longer smallest. */
  private def isEmptyText(image: Literal): Boolean = image.value match {
    case text: UTF8String => text.numBytes == 0
    case _ => false
  }

  private def isBound(image: Literal): Boolean = image.value match {
    case null => false
    case text: UTF8String if text.numBytes == 0 => false
    case text: UTF8String if isFormatted => Character.isDigit(text.getByte(0).toInt)
    case _ => true
  }

  /** By as much as a zone can make of it. Zones have left out whole days of their calendars, too. */
  def moved(literal: Literal, direction: Int): Literal = literal match {
    case Literal(micros: Long, TimestampType) if isLocal =>
      Literal(Math.addExact(micros, direction * LongestOffsetMicros), TimestampType)
    case Literal(micros: Long, TimestampNTZType) if isLocal =>
      Literal(Math.addExact(micros, direction * 2 * DayMicros), TimestampNTZType)
    case Literal(days: Int, DateType) if isLocal && base.dataType == DateType =>
      Literal(Math.addExact(days, direction * 2), DateType)
    case other => other
  }

  /** What the expression makes of a value of the base column; none if that fails. */
  def image(v: Literal): Option[Literal] =
    try {
      val of = value.transform {
        case _: AttributeReference => v
        case zoned: TimeZoneAwareExpression => zoned.withTimeZone("UTC")
      }
      Option.when(v.dataType == base.dataType)(Literal(of.eval(), column.dataType))
    } catch { case NonFatal(_) => None }
}

private[scan] object Generated {

  /** No zone is further from UTC. */
  private val LongestOffsetMicros = 18L * 3600 * 1000 * 1000

  private val DayMicros = 24L * 3600 * 1000 * 1000

  private val ascendingFormats = Set("yyyy", "yyyy-MM", "yyyy-MM-dd", "yyyy-MM-dd-HH")

  /** Whether a larger base never has a smaller image. */
  def ascends(e: Expression): Boolean = e match {
    case base: AttributeReference => isOrdered(base.dataType)
    case cast: Cast => keepsOrder(cast.child.dataType, cast.dataType) && ascends(cast.child)
    case Year(child) => ascends(child)
    case TruncDate(child, format) => format.foldable && ascends(child)
    case TruncTimestamp(format, child, _) => format.foldable && ascends(child)
    case DateFormatClass(child, Literal(format: UTF8String, _), _) =>
      ascendingFormats(format.toString) && isTime(child.dataType) && ascends(child)
    case Substring(child, Literal(start: Int, _), Literal(length: Int, _)) =>
      (start == 0 || start == 1) && length >= 0 && isOrdered(child.dataType) && ascends(child)
    case _ => false
  }

  private def isOrdered(dataType: DataType): Boolean = dataType match {
    case string: StringType => isBinary(string)
    case _: NumericType | DateType | TimestampType | TimestampNTZType | BooleanType => true
    case _ => false
  }

  def isBinary(string: StringType): Boolean =
    string.collationId == CollationFactory.UTF8_BINARY_COLLATION_ID

  private def keepsOrder(from: DataType, to: DataType): Boolean = (from, to) match {
    case (_: NumericType, _: NumericType) => Cast.canUpCast(from, to)
    case _ => isTime(from) && isTime(to)
  }

  private def isTime(dataType: DataType): Boolean =
    dataType == DateType || dataType == TimestampType || dataType == TimestampNTZType
}
