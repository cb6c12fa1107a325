package io.deltaic.maintenance

import java.math.{BigDecimal => JBigDecimal, BigInteger, RoundingMode}
import java.time.{DateTimeException, LocalDate, LocalDateTime, OffsetDateTime, ZoneOffset}

import com.fasterxml.jackson.databind.JsonNode
import org.apache.parquet.io.api.{Binary, RecordConsumer}
import org.apache.parquet.schema.LogicalTypeAnnotation.{
  TimeUnit,
  dateType,
  decimalType,
  intType,
  stringType,
  timestampType
}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._
import org.apache.parquet.schema.{Type, Types}

/**
 * A column of a table in `stats_parsed` and `partitionValues_parsed` of checkpoints, with its name in data files
 * (Protocol § Checkpoint Schema).
 */
sealed trait ParsedColumn {
  def name: String
}

final case class ParsedGroup(name: String, children: Seq[ParsedColumn]) extends ParsedColumn
final case class ParsedLeaf(name: String, kind: ParsedType) extends ParsedColumn

/** The types of values in a checkpoint, each stored as Spark stores a column of that type. */
sealed abstract class ParsedType(private[maintenance] val primitive: PrimitiveTypeName)

object ParsedType {
  case object Bool extends ParsedType(BOOLEAN)
  case object Int8 extends ParsedType(INT32)
  case object Int16 extends ParsedType(INT32)
  case object Int32 extends ParsedType(INT32)
  case object Int64 extends ParsedType(INT64)
  case object Float32 extends ParsedType(FLOAT)
  case object Float64 extends ParsedType(DOUBLE)

  /** A column that is double in some files and float in others, written before it was widened. */
  case object WidenedFloat extends ParsedType(DOUBLE)
  case object Text extends ParsedType(BINARY)
  case object Bytes extends ParsedType(BINARY)

  /** Days since the epoch. */
  case object Date extends ParsedType(INT32)

  /** Microseconds since the epoch; so is TimestampNtz. */
  case object Timestamp extends ParsedType(INT64)
  case object TimestampNtz extends ParsedType(INT64)

  final case class Decimal(precision: Int, scale: Int) extends ParsedType(
        if (precision <= 9) INT32 else if (precision <= 18) INT64 else FIXED_LEN_BYTE_ARRAY
      ) {

    /** The number of bytes of the largest number with this precision. */
    private[maintenance] val byteCount: Int =
      BigInteger.TEN.pow(precision).subtract(BigInteger.ONE).bitLength / 8 + 1
  }

  private[maintenance] def schema(column: ParsedColumn): Type = column match {
    case ParsedGroup(name, children) =>
      children.foldLeft(Types.optionalGroup())((group, c) => group.addField(schema(c))).named(name)
    case ParsedLeaf(name, kind) =>
      val leaf = Types.optional(kind.primitive)
      val typed = kind match {
        case Int8 => leaf.as(intType(8, true))
        case Int16 => leaf.as(intType(16, true))
        case Text => leaf.as(stringType())
        case Date => leaf.as(dateType())
        case Timestamp => leaf.as(timestampType(true, TimeUnit.MICROS))
        case TimestampNtz => leaf.as(timestampType(false, TimeUnit.MICROS))
        case d: Decimal if d.primitive == FIXED_LEN_BYTE_ARRAY =>
          leaf.length(d.byteCount).as(decimalType(d.scale, d.precision))
        case d: Decimal => leaf.as(decimalType(d.scale, d.precision))
        case Bool | Int32 | Int64 | Float32 | Float64 | WidenedFloat | Bytes => leaf
      }
      typed.named(name)
  }

  /**
   * Writes a value: a `Boolean`, `Int` (days too), `Long` (microseconds too), `Float`, `Double`, `String`,
   * `Array[Byte]` or a `java.math.BigDecimal` of the type's scale.
   */
  private[maintenance] def write(out: RecordConsumer, kind: ParsedType, value: Any): Unit =
    (kind, value) match {
      case (_, bool: Boolean) => out.addBoolean(bool)
      case (_, int: Int) => out.addInteger(int)
      case (_, long: Long) => out.addLong(long)
      case (_, float: Float) => out.addFloat(float)
      case (_, double: Double) => out.addDouble(double)
      case (_, text: String) => out.addBinary(Binary.fromString(text))
      case (_, bytes: Array[Byte]) => out.addBinary(Binary.fromConstantByteArray(bytes))
      case (d: Decimal, number: JBigDecimal) => d.primitive match {
          case INT32 => out.addInteger(number.unscaledValue.intValueExact)
          case INT64 => out.addLong(number.unscaledValue.longValueExact)
          case _ => out.addBinary(signExtended(number.unscaledValue.toByteArray, d.byteCount))
        }
      case _ => throw new IllegalArgumentException(s"$value is no value of $kind")
    }

  private def signExtended(bytes: Array[Byte], length: Int): Binary = {
    val all = new Array[Byte](length)
    val fill = (if (bytes(0) < 0) -1 else 0).toByte
    java.util.Arrays.fill(all, 0, length - bytes.length, fill)
    System.arraycopy(bytes, 0, all, length - bytes.length, bytes.length)
    Binary.fromConstantByteArray(all)
  }

  /**
   * A value from JSON statistics; null if it is not of this type, because null means that the bound is unknown.
   *
   * @param isUpper whether it is an upper bound, which must not be truncated if the type is less precise than the JSON
   */
  private[maintenance] def fromJson(kind: ParsedType, node: JsonNode, isUpper: Boolean): Any =
    kind match {
      case Int8 => integer(node, Byte.MinValue, Byte.MaxValue)
      case Int16 => integer(node, Short.MinValue, Short.MaxValue)
      case Int32 => integer(node, Int.MinValue, Int.MaxValue)
      case Int64 => if (node.isIntegralNumber && node.canConvertToLong) node.longValue else null
      case Float32 => floating(node)(_.toFloat)
      case Float64 => floating(node)(_.toDouble)
      case WidenedFloat => floating(node)(text => widened(text.toDouble, isUpper))
      case d: Decimal => decimal(d, node, isUpper)
      case Text => if (node.isTextual) node.textValue else null
      case Bool => if (node.isBoolean) node.booleanValue else null
      case Date => time(node)(text => Math.toIntExact(LocalDate.parse(text).toEpochDay))
      case Timestamp => time(node)(text => micros(OffsetDateTime.parse(withT(text)).toInstant))
      case TimestampNtz => time(node)(text => micros(wallClock(text).toInstant(ZoneOffset.UTC)))
      case Bytes => null
    }

  private def integer(node: JsonNode, min: Int, max: Int): Any =
    if (
      node.isIntegralNumber && node.canConvertToInt && node.intValue >= min && node.intValue <= max
    )
      node.intValue
    else null

  /** NaN and the infinities are written as strings. */
  private def floating(node: JsonNode)(parse: String => Any): Any =
    if (!node.isNumber && !node.isTextual) null
    else {
      try parse(node.asText)
      catch { case _: NumberFormatException => null }
    }

  /** The string 0.1 of a float stands for that float, which is slightly larger than the double 0.1. */
  private def widened(stored: Double, isUpper: Boolean): Double = {
    val float = stored.toFloat.toDouble
    if (float.isInfinite) stored
    else if (isUpper) math.max(stored, float)
    else math.min(stored, float)
  }

  private def decimal(kind: Decimal, node: JsonNode, isUpper: Boolean): Any =
    if (!node.isNumber) null
    else {
      val rounding = if (isUpper) RoundingMode.CEILING else RoundingMode.FLOOR
      val value = node.decimalValue.setScale(kind.scale, rounding)
      if (value.precision > kind.precision) null else value
    }

  private def time(node: JsonNode)(parse: String => Any): Any =
    if (!node.isTextual) null
    else {
      try parse(node.textValue)
      catch { case _: DateTimeException | _: ArithmeticException => null }
    }

  /** A plain date, from a widened date column, means its midnight. */
  private def wallClock(text: String): LocalDateTime =
    if (text.length == 10) LocalDate.parse(text).atStartOfDay
    else LocalDateTime.parse(withT(text.stripSuffix("Z")))

  private def withT(text: String): String =
    if (text.length > 10 && text.charAt(10) == ' ') text.take(10) + "T" + text.drop(11) else text

  private def micros(at: java.time.Instant): Long =
    Math.addExact(Math.multiplyExact(at.getEpochSecond, 1000000L), at.getNano / 1000L)
}
