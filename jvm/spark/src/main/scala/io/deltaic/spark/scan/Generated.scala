package io.deltaic.spark.scan

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.deltaic.SchemaShims
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * What a generation expression is under the settings of a session: which casts fail, what `size(NULL)` is
 * and as what numbers are added depends on them.
 *
 * @param value over one column alone, in the type of the generated one
 */
private[scan] final case class SessionValue(settings: SQLConf, value: Expression) {

  /** Its value where `base` has that one; none if it fails. */
  def at(base: Literal): Option[Any] =
    try {
      val of = value.transform {
        case _: AttributeReference => base
        case zoned: TimeZoneAwareExpression => zoned.withTimeZone("UTC")
      }
      Some(SQLConf.withExistingConf(settings)(of.eval()))
    } catch { case NonFatal(_) => None }
}

private[scan] object SessionValue {

  /** Those of this session, and of sessions with Spark's defaults of now and before ANSI was the default. */
  def settings: Seq[SQLConf] = {
    val own = SQLConf.get
    val legacy = own.getAllConfs.keys.filter(_.startsWith("spark.sql.legacy."))
    // Without such settings, this session has the defaults of its dialect.
    val dialects = Seq(true, false).filter(_ != own.ansiEnabled || legacy.nonEmpty)
    own +: dialects.map { ansi =>
      val other = own.clone()
      legacy.foreach(other.unsetConf)
      other.setConf(SQLConf.ANSI_ENABLED, ansi)
      other
    }
  }
}

/**
 * One generated partition column.
 *
 * @param values its expression over `base` alone, as different sessions understand it, this one first
 */
private[scan] final class Generated(
    val column: StructField,
    values: Seq[SessionValue],
    val base: AttributeReference
) {
  import Generated._

  private val attribute = AttributeReference(column.name, column.dataType)()

  /** The expression in this session. */
  val value: Expression = values.head.value

  /** Whether the image depends on the zone of the session that computed it. */
  val isLocal: Boolean = values.map(_.value).exists { value =>
    value != base && value.exists(e => holdsInstants(e.dataType) || readsZone(e))
  }

  /** Whether a larger base never has a smaller image. */
  val ascends: Boolean = values.forall(session => Generated.ascends(session.value))

  /** How far the bounds of the image are off: a zone's breadth, or nothing. */
  private val breadth = if (isLocal) 1 else 0

  /** An instant made of a date, in a zone that nobody knows. */
  private val hasUnknownResult =
    column.dataType == TimestampType && base.dataType != TimestampType

  private val comparesAsItEquals = base.dataType match {
    case FloatType | DoubleType => false // -0.0 = 0.0, but they have different images
    case string: StringType => SchemaShims.isBinary(string)
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
        case AtMost(v) if ascends => upper(v)
        case AtLeast(v) if ascends => lower(v)
        case Absent if !isLocal || ascends => imageOf(Literal(null, base.dataType))
        case _ => None
      }

  private def equal(v: Literal): Option[Expression] =
    if (!isLocal) Option.when(comparesAsItEquals)(v).flatMap(imageOf)
    else if (!ascends) None
    else for (low <- lower(v); high <- upper(v)) yield And(low, high)

  private def imageOf(v: Literal): Option[Expression] =
    image(v, 0).filterNot(isEmpty).map(EqualNullSafe(attribute, _))

  private def upper(v: Literal): Option[Expression] =
    image(v, breadth).filter(isBound).map { bound =>
      val below = LessThanOrEqual(attribute, bound)
      if (bound.dataType.isInstanceOf[StringType]) Or(below, IsNull(attribute)) else below
    }

  /** Years beyond 9999 are written with a sign, which sorts before the digits. */
  private def lower(v: Literal): Option[Expression] =
    image(v, -breadth).filter(isBound).map { bound =>
      val above = GreaterThanOrEqual(attribute, bound)
      if (isFormatted) Or(above, LessThan(attribute, Literal("0"))) else above
    }

  private def isFormatted: Boolean = value.exists(_.isInstanceOf[DateFormatClass])

  /** A partition has no empty text or binary: it is null there, and so the smallest is no longer smallest. */
  private def isEmpty(image: Literal): Boolean = image.value match {
    case text: UTF8String => text.numBytes == 0
    case bytes: Array[Byte] => bytes.isEmpty
    case _ => false
  }

  private def isBound(image: Literal): Boolean = image.value match {
    case null => false
    case text: UTF8String if text.numBytes == 0 => false
    case text: UTF8String if isFormatted => Character.isDigit(text.getByte(0).toInt)
    case _ => true
  }

  /**
   * What the expression makes of a value of the base column, in every session in which it makes something of it;
   * none if it is not the same, or fails in all, as it does for the last times there are, which nothing is later
   * than.
   *
   * @param shift up (1) or down (-1) by as much as a zone can make of it, or not at all (0)
   */
  def image(v: Literal, shift: Int): Option[Literal] =
    try {
      val argument = moved(v, shift)
      val results = values.flatMap(_.at(argument)).map(Literal(_, column.dataType)).distinct
      Option.when(v.dataType == base.dataType && results.length == 1) {
        resultMoved(results.head, shift)
      }
    } catch { case NonFatal(_) => None }

  /** An instant made of a local time is as far from UTC once more. */
  private def resultMoved(image: Literal, shift: Int): Literal =
    if (column.dataType == TimestampType) moved(image, shift) else image
}

private[scan] object Generated {

  /** No zone is further from UTC. */
  private val LongestOffsetMicros = 18L * 3600 * 1000 * 1000

  private val DayMicros = 24L * 3600 * 1000 * 1000

  private val ascendingFormats = Set("yyyy", "yyyy-MM", "yyyy-MM-dd", "yyyy-MM-dd-HH")

  /** Zones have left out whole days of their calendars: two days for what is not an instant. */
  private def moved(literal: Literal, shift: Int): Literal = literal match {
    case Literal(micros: Long, TimestampType) =>
      Literal(Math.addExact(micros, shift * LongestOffsetMicros), TimestampType)
    case Literal(micros: Long, TimestampNTZType) =>
      Literal(Math.addExact(micros, shift * 2 * DayMicros), TimestampNTZType)
    case Literal(days: Int, DateType) => Literal(Math.addExact(days, shift * 2), DateType)
    case other => other
  }

  /** An instant is written and read in the zone of the session, its literals included. */
  private def holdsInstants(dataType: DataType): Boolean = dataType match {
    case TimestampType | VariantType => true
    case ArrayType(element, _) => holdsInstants(element)
    case MapType(key, value, _) => holdsInstants(key) || holdsInstants(value)
    case struct: StructType => struct.fields.exists(field => holdsInstants(field.dataType))
    case _ => false
  }

  /** `from_unixtime` and its like depend on the zone with no TIMESTAMP in sight. */
  private def readsZone(e: Expression): Boolean = e match {
    case cast: Cast => Cast.needsTimeZone(cast.child.dataType, cast.dataType)
    case hand: GetTimeField => hand.child.dataType != TimestampNTZType
    case _ => e.isInstanceOf[TimeZoneAwareExpression]
  }

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
    case string: StringType => SchemaShims.isBinary(string)
    case _: NumericType | DateType | TimestampType | TimestampNTZType | BooleanType => true
    case _ => false
  }

  private def keepsOrder(from: DataType, to: DataType): Boolean = (from, to) match {
    case (_: NumericType, _: NumericType) => Cast.canUpCast(from, to)
    case _ => isTime(from) && isTime(to)
  }

  private def isTime(dataType: DataType): Boolean =
    dataType == DateType || dataType == TimestampType || dataType == TimestampNTZType
}
