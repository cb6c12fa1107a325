package io.deltaic.spark.scan

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * A generation expression as evaluated under the settings of a session. The settings determine
 * which casts fail, the value of `size(NULL)` and the type of arithmetic results.
 *
 * @param value an expression over one column, cast to the type of the generated column
 */
private[scan] final case class SessionValue(settings: SQLConf, value: Expression) {

  /** Its value for this value of `base`; none if it fails. */
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

  /** The settings of this session, and of sessions with Spark's current defaults and with its non-ANSI defaults. */
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
 * @param values its expression over `base`, as evaluated under the settings of different sessions, this one first
 */
private[scan] final class GeneratedColumnFilters(
    val column: StructField,
    values: Seq[SessionValue],
    val base: AttributeReference
) {
  import GeneratedColumnFilters._

  private val attribute = AttributeReference(column.name, column.dataType)()

  /** The expression in this session. */
  val value: Expression = values.head.value

  /** Whether the image depends on the zone of the session that computed it. */
  val isLocal: Boolean = values.map(_.value).exists { value =>
    value != base && value.exists(e => holdsInstants(e.dataType) || readsZone(e))
  }

  /** Whether a larger base never has a smaller image. */
  val ascends: Boolean = values.forall(session => GeneratedColumnFilters.ascends(session.value))

  /** Whether the bounds of the image are shifted by the largest zone offset (1) or not (0). */
  private val breadth = if (isLocal) 1 else 0

  /** An instant computed from a date, in an unknown zone. */
  private val hasUnknownResult =
    column.dataType == TimestampType && base.dataType != TimestampType

  private val comparesAsItEquals = base.dataType match {
    case FloatType | DoubleType => false // -0.0 = 0.0, but they have different images
    case string: StringType => SchemaInternals.isBinary(string)
    case _ => true
  }

  def of(comparison: ComparedValues): Option[Expression] =
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

  /** Partition values store an empty string or binary as null, so the smallest value would not be the smallest. */
  private def isEmpty(image: Literal): Boolean = image.value match {
    case string: UTF8String => string.numBytes == 0
    case bytes: Array[Byte] => bytes.isEmpty
    case _ => false
  }

  private def isBound(image: Literal): Boolean = image.value match {
    case null => false
    case string: UTF8String if string.numBytes == 0 => false
    case string: UTF8String if isFormatted => Character.isDigit(string.getByte(0).toInt)
    case _ => true
  }

  /**
   * The expression's value for a value of the base column, in every session in which it does not
   * fail; none if sessions disagree, or if it fails in all of them, as for the latest possible
   * times.
   *
   * @param shift up (1) or down (-1) by the largest zone offset, or not at all (0)
   */
  def image(v: Literal, shift: Int): Option[Literal] =
    try {
      val argument = moved(v, shift)
      val results = values.flatMap(_.at(argument)).map(Literal(_, column.dataType)).distinct
      Option.when(v.dataType == base.dataType && results.length == 1) {
        resultMoved(results.head, shift)
      }
    } catch { case NonFatal(_) => None }

  /** An instant computed from a local time is shifted by the zone offset a second time. */
  private def resultMoved(image: Literal, shift: Int): Literal =
    if (column.dataType == TimestampType) moved(image, shift) else image
}

private[scan] object GeneratedColumnFilters {

  /** No zone is further from UTC. */
  private val LongestOffsetMicros = 18L * 3600 * 1000 * 1000

  private val DayMicros = 24L * 3600 * 1000 * 1000

  private val ascendingFormats = Set("yyyy", "yyyy-MM", "yyyy-MM-dd", "yyyy-MM-dd-HH")

  /** Zones have skipped whole calendar days, so values that are not instants are shifted by two days. */
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
    case string: StringType => SchemaInternals.isBinary(string)
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
