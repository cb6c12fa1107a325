package io.deltaic.spark.schema

import java.math.{BigDecimal => JBigDecimal}
import java.nio.ByteBuffer
import java.nio.charset.{CharacterCodingException, StandardCharsets}
import java.time.format.DateTimeFormatter
import java.time.{LocalDateTime, ZoneId, ZoneOffset}
import java.util.Locale

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Literal}
import org.apache.spark.sql.catalyst.util.{DateFormatter, DateTimeUtils}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/**
 * The strings that represent partition values in the log (Protocol § Partition Value Serialization).
 *
 * Values are Catalyst's own (`UTF8String`, days, microseconds, `Decimal`, ...). `null` represents a
 * null partition value on both sides. An empty string is a null partition value too, for every
 * type, so an empty string or an empty binary is read back as null.
 *
 * A timestamp is written in its ISO 8601 form in UTC, which means the same instant to every reader;
 * the form without a zone, which the protocol describes and older writers used, is read in the
 * session's time zone.
 *
 * When delta-spark converts a Parquet table, it writes the values in directory names to the log
 * unchanged, such as `1` for true. They are read as delta-spark reads them: as Spark casts strings
 * in non-ANSI mode.
 */
private[deltaic] object PartitionValues {

  /** The log's string for a Catalyst value, or null. */
  def toLog(column: String, dataType: DataType, value: Any): String =
    if (value == null) null
    else {
      val string =
        try render(dataType, value)
        catch { case NonFatal(e) => throw invalid(column, shown(value), dataType, e) }
      if (string.isEmpty) null else string
    }

  /**
   * The Catalyst value of a string from the log. `zone` is used to parse timestamps without a zone.
   */
  def fromLog(column: String, dataType: DataType, string: String, zone: ZoneId): Any =
    if (string == null || string.isEmpty) null
    else {
      try parse(dataType, string, zone)
      catch {
        case NonFatal(e) =>
          castString(dataType, string, zone).getOrElse(throw invalid(column, string, dataType, e))
      }
    }

  private def castString(dataType: DataType, string: String, zone: ZoneId): Option[Any] =
    dataType match {
      case BooleanType | _: NumericType | TimestampNTZType =>
        Option(Cast(Literal(string), dataType, Some(zone.getId), EvalMode.LEGACY).eval())
      case _ => None
    }

  private def render(dataType: DataType, value: Any): String = dataType match {
    case _: DecimalType => value.asInstanceOf[Decimal].toJavaBigDecimal.toPlainString
    case DateType => dateFormatter.format(value.asInstanceOf[Int])
    case TimestampType => isoInstantMicros.format(localDateTime(value.asInstanceOf[Long]))
    case TimestampNTZType =>
      val micros = value.asInstanceOf[Long]
      val whole = Math.floorMod(micros, MicrosPerSecond) == 0
      (if (whole) localSeconds else localMicros).format(localDateTime(micros))
    case BinaryType => strictUtf8(value.asInstanceOf[Array[Byte]])
    case _: StringType | BooleanType | _: NumericType => value.toString
    case _ => unsupported(dataType)
  }

  private def parse(dataType: DataType, string: String, zone: ZoneId): Any = dataType match {
    case _: StringType => UTF8String.fromString(string)
    case ByteType => string.toByte
    case ShortType => string.toShort
    case IntegerType => string.toInt
    case LongType => string.toLong
    case FloatType => special(string).map(_.toFloat).getOrElse(string.toFloat)
    case DoubleType => special(string).getOrElse(string.toDouble)
    case decimal: DecimalType => parseDecimal(decimal, string)
    case BooleanType => string.toBoolean
    case DateType => parsed(DateTimeUtils.stringToDate(UTF8String.fromString(string)))
    case TimestampType =>
      parsed(DateTimeUtils.stringToTimestamp(UTF8String.fromString(string), zone))
    case TimestampNTZType =>
      val utf8 = UTF8String.fromString(string)
      parsed(DateTimeUtils.stringToTimestampWithoutTimeZone(utf8, allowTimeZone = false))
    case BinaryType => string.getBytes(StandardCharsets.UTF_8)
    case _ => unsupported(dataType)
  }

  private def parseDecimal(dataType: DecimalType, string: String): Decimal = {
    val exact = new JBigDecimal(string).setScale(dataType.scale)
    if (exact.precision > dataType.precision) throw new ArithmeticException("too many digits")
    Decimal(exact, dataType.precision, dataType.scale)
  }

  /** Names of special values in other writers that Java's parser does not accept. */
  private def special(string: String): Option[Double] = string.toLowerCase(Locale.ROOT) match {
    case "inf" | "+inf" | "infinity" | "+infinity" => Some(Double.PositiveInfinity)
    case "-inf" | "-infinity" => Some(Double.NegativeInfinity)
    case "nan" => Some(Double.NaN)
    case _ => None
  }

  /**
   * Binary is written as a string, so only valid UTF-8 can be represented; other bytes must not be changed silently.
   */
  private def strictUtf8(bytes: Array[Byte]): String =
    try StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString
    catch {
      case e: CharacterCodingException =>
        throw new IllegalArgumentException("a binary partition value has to be valid UTF-8", e)
    }

  private def localDateTime(micros: Long): LocalDateTime =
    LocalDateTime.ofInstant(DateTimeUtils.microsToInstant(micros), ZoneOffset.UTC)

  private def parsed[T](value: Option[T]): T =
    value.getOrElse(throw new IllegalArgumentException("not a value of this type"))

  private def unsupported(dataType: DataType): Nothing =
    throw new IllegalArgumentException(s"${dataType.sql} cannot be the type of a partition column")

  private def shown(value: Any): String = value match {
    case bytes: Array[Byte] => bytes.map("%02X".format(_)).mkString("X'", "", "'")
    case other => String.valueOf(other)
  }

  private def invalid(
      column: String,
      value: String,
      dataType: DataType,
      cause: Throwable
  ): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_INVALID_PARTITION_VALUE",
      Map("column" -> column, "value" -> value, "type" -> dataType.sql),
      cause
    )

  private val MicrosPerSecond = 1000000L
  private lazy val dateFormatter = DateFormatter()
  private val isoInstantMicros = pattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSS'Z'")
  private val localMicros = pattern("uuuu-MM-dd HH:mm:ss.SSSSSS")
  private val localSeconds = pattern("uuuu-MM-dd HH:mm:ss")

  private def pattern(string: String): DateTimeFormatter =
    DateTimeFormatter.ofPattern(string, Locale.ROOT)
}
