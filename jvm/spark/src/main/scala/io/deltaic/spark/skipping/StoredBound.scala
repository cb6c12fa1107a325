package io.deltaic.spark.skipping

import java.math.{BigDecimal => JBigDecimal, BigInteger, RoundingMode}

import com.fasterxml.jackson.core.{JsonParser, JsonToken}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.spark.schema.LeafColumn

/**
 * How the bounds of a type are read from a file's statistics.
 *
 * A stored bound may be less exact than the values in the file. This class compensates for it: a
 * lower bound is lowered and an upper bound raised, so that every value of the file is between the
 * two. A bound is null if it is missing, has an unexpected JSON type, or is out of the type's
 * range.
 */
sealed abstract private[skipping] class StoredBound {
  type Column <: MutableFileColumn
  def newColumn(size: Int): Column

  /** Reads the scalar at which the parser stands. `lower` is true for a lower bound and false for an upper one. */
  def read(json: JsonParser, lower: Boolean, column: Column, i: Int): Unit
}

private[skipping] object StoredBound {

  /**
   * None for types without bounds, or whose order is not that of the bounds (collated strings).
   */
  def of(leaf: LeafColumn): Option[StoredBound] = leaf.dataType match {
    case ByteType => Some(new IntegerBound(Byte.MinValue, Byte.MaxValue))
    case ShortType => Some(new IntegerBound(Short.MinValue, Short.MaxValue))
    case IntegerType => Some(new IntegerBound(Int.MinValue, Int.MaxValue))
    case LongType => Some(new IntegerBound(Long.MinValue, Long.MaxValue))
    case BooleanType => Some(BooleanBound)
    case FloatType => Some(FloatBound)
    case DoubleType => Some(new DoubleBound(mayHoldFloats = leaf.typeChanged))
    case d: DecimalType if d.precision <= 18 => Some(new SmallDecimalBound(d))
    case d: DecimalType => Some(new LargeDecimalBound(d))
    case DateType => Some(DateBound)
    case TimestampType => Some(new TimestampBound(StatsTimestamps.timestampMicros))
    case TimestampNTZType => Some(new TimestampBound(StatsTimestamps.timestampNtzMicros))
    case StringType => Some(StringBound)
    case _ => None
  }
}

sealed abstract private[skipping] class LongBound extends StoredBound {
  final override type Column = LongColumn
  final override def newColumn(size: Int): LongColumn = new LongColumn(size)
}

final private[skipping] class IntegerBound(min: Long, max: Long) extends LongBound {
  override def read(json: JsonParser, lower: Boolean, column: LongColumn, i: Int): Unit =
    if (
      json.currentToken == JsonToken.VALUE_NUMBER_INT &&
      json.getNumberType != JsonParser.NumberType.BIG_INTEGER
    ) {
      val value = json.getLongValue
      if (value >= min && value <= max) column.set(i, value)
    }
}

private[skipping] object BooleanBound extends LongBound {
  override def read(json: JsonParser, lower: Boolean, column: LongColumn, i: Int): Unit =
    json.currentToken match {
      case JsonToken.VALUE_TRUE => column.set(i, 1)
      case JsonToken.VALUE_FALSE => column.set(i, 0)
      case _ =>
    }
}

private[skipping] object DateBound extends LongBound {
  override def read(json: JsonParser, lower: Boolean, column: LongColumn, i: Int): Unit =
    if (json.currentToken == JsonToken.VALUE_STRING) {
      val days = StatsTimestamps.epochDays(json.getText)
      if (days != StatsTimestamps.Unknown) column.set(i, days)
    }
}

/**
 * Timestamps are written in milliseconds, truncated and not rounded: the largest value is less than a
 * millisecond above the stored one. Before 1970 a writer that divides microseconds rounds towards the
 * epoch, so the smallest value may be less than a millisecond below. Until 1972 some zones had
 * offsets with seconds, which the written offset leaves out.
 */
final private[skipping] class TimestampBound(parse: String => Long) extends LongBound {
  private val LostMicros = 999L
  private val MinuteMicros = 60000000L
  private val Start1973Micros = 94694400000000L

  override def read(json: JsonParser, lower: Boolean, column: LongColumn, i: Int): Unit =
    if (json.currentToken == JsonToken.VALUE_STRING) {
      val stored = parse(json.getText)
      if (stored != StatsTimestamps.Unknown) {
        val offsetMicros = if (stored < Start1973Micros) MinuteMicros else 0L
        val bound =
          if (lower) stored - offsetMicros - (if (stored < 0) LostMicros else 0L)
          else stored + offsetMicros + LostMicros
        column.set(i, bound)
      }
    }
}

sealed abstract private[skipping] class FloatingBound extends StoredBound {
  final override type Column = DoubleColumn
  final override def newColumn(size: Int): DoubleColumn = new DoubleColumn(size)

  final override def read(json: JsonParser, lower: Boolean, column: DoubleColumn, i: Int): Unit =
    stored(json).filterNot(_.isNaN).flatMap(bound(_, lower)).foreach(column.set(i, _))

  protected def bound(stored: Double, lower: Boolean): Option[Double]

  private def stored(json: JsonParser): Option[Double] = json.currentToken match {
    case JsonToken.VALUE_NUMBER_INT | JsonToken.VALUE_NUMBER_FLOAT => Some(json.getDoubleValue)
    case JsonToken.VALUE_STRING =>
      json.getText match {
        case "Infinity" => Some(Double.PositiveInfinity)
        case "-Infinity" => Some(Double.NegativeInfinity)
        case _ => None
      }
    case _ => None
  }
}

/**
 * The nearest float is the value, whether the writer has written the shortest string for the float or its exact value.
 */
private[skipping] object FloatBound extends FloatingBound {
  override protected def bound(stored: Double, lower: Boolean): Option[Double] =
    Some(stored.toFloat.toDouble).filter(f => f.isInfinite == stored.isInfinite)
}

/**
 * In a file written when the column was a float, the string 0.1 represents that float, which is
 * slightly more than the double 0.1.
 */
final private[skipping] class DoubleBound(mayHoldFloats: Boolean) extends FloatingBound {
  override protected def bound(stored: Double, lower: Boolean): Option[Double] =
    Some(
      if (!mayHoldFloats) stored
      else if (lower) math.min(stored, stored.toFloat.toDouble)
      else math.max(stored, stored.toFloat.toDouble)
    )
}

/**
 * Some writers convert decimals to doubles, which preserve 15 digits and have an error in the last
 * of 53 bits. A bound of up to 15 digits is used unchanged, a longer one is widened by one part in
 * 2^50.
 */
sealed abstract private[skipping] class DecimalBound(dataType: DecimalType) extends StoredBound {
  private val ExactDigits = 15
  private val LongestScale = 400

  final protected def unscaled(json: JsonParser, lower: Boolean): Option[BigInteger] =
    json.currentToken match {
      case JsonToken.VALUE_NUMBER_INT | JsonToken.VALUE_NUMBER_FLOAT =>
        unscaled(json.getDecimalValue, lower)
      case _ => None
    }

  private def unscaled(stored: JBigDecimal, lower: Boolean): Option[BigInteger] = {
    val wholeDigits = stored.precision.toLong - stored.scale
    if (wholeDigits > dataType.precision - dataType.scale || stored.scale > LongestScale) None
    else {
      val rounding = if (lower) RoundingMode.FLOOR else RoundingMode.CEILING
      val exact = stored.setScale(dataType.scale, rounding).unscaledValue
      val error =
        if (dataType.precision <= ExactDigits) BigInteger.ZERO
        else exact.abs.shiftRight(50).add(BigInteger.ONE)
      val bound = if (lower) exact.subtract(error) else exact.add(error)
      if (new JBigDecimal(bound).precision > dataType.precision) None else Some(bound)
    }
  }
}

final private[skipping] class SmallDecimalBound(dataType: DecimalType)
    extends DecimalBound(dataType) {
  override type Column = LongColumn
  override def newColumn(size: Int): LongColumn = new LongColumn(size)
  override def read(json: JsonParser, lower: Boolean, column: LongColumn, i: Int): Unit =
    unscaled(json, lower).foreach(v => column.set(i, v.longValueExact))
}

final private[skipping] class LargeDecimalBound(dataType: DecimalType)
    extends DecimalBound(dataType) {
  override type Column = ObjectColumn
  override def newColumn(size: Int): ObjectColumn = new ObjectColumn(size)
  override def read(json: JsonParser, lower: Boolean, column: ObjectColumn, i: Int): Unit =
    unscaled(json, lower).foreach { v =>
      val value = new JBigDecimal(v, dataType.scale)
      column.set(i, Decimal(value, dataType.precision, dataType.scale))
    }
}

/**
 * Strings are compared byte by byte. A truncated bound is still valid: writers truncate a lower
 * bound to a prefix, and raise an upper bound that they truncate. A string with replacement
 * characters or unpaired surrogates represents bytes that are not UTF-8, whose order is lost.
 */
private[skipping] object StringBound extends StoredBound {
  override type Column = ObjectColumn
  override def newColumn(size: Int): ObjectColumn = new ObjectColumn(size)
  override def read(json: JsonParser, lower: Boolean, column: ObjectColumn, i: Int): Unit =
    if (json.currentToken == JsonToken.VALUE_STRING) {
      val string = json.getText
      if (keepsOrder(string)) column.set(i, UTF8String.fromString(string))
    }

  private def keepsOrder(string: String): Boolean = {
    var i = 0
    while (i < string.length) {
      val c = string.charAt(i)
      if (c == '\uFFFD') return false
      if (Character.isSurrogate(c)) {
        val paired = Character.isHighSurrogate(c) && i + 1 < string.length &&
          Character.isLowSurrogate(string.charAt(i + 1))
        if (!paired) return false
        i += 1
      }
      i += 1
    }
    true
  }
}
