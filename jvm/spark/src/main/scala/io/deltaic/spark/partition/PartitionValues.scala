package io.deltaic.spark.partition

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
 * The strings by which the log spells partition values (Protocol § Partition Value Serialization).
 *
 * Values are Catalyst's own (`UTF8String`, days, microseconds, `Decimal`, ...). `null` stands for a
 * null partition value on both sides. An empty string is a null partition value too, whatever the
 * type, so an empty string or an empty binary that is written comes back as null.
 *
 * A timestamp is written in its ISO 8601 form in UTC, which means the same instant to every reader;
 * the form without a zone, which the protocol describes and older writers used, is read in the
 * session's time zone.
 *
 * What folders are called that delta-spark took over as partitions is in the log as it was found, such as
 * `1` for true. It is read as delta-spark reads it: as Spark casts texts when the session asks for no
 * ANSI mode.
 */
private[deltaic] object PartitionValues {

  /** The log's string for a Catalyst value, or null. */
  def toLog(column: String, dataType: DataType, value: Any): String =
    if (value == null) null
    else {
      val text =
        try render(dataType, value)
        catch { case NonFatal(e) => throw invalid(column, shown(value), dataType, e) }
      if (text.isEmpty) null else text
    }

  /**
   * The Catalyst value of a string from the log. `zone` reads timestamps that carry no zone of
   * their own.
   */
  def fromLog(column: String, dataType: DataType, text: String, zone: ZoneId): Any =
    if (text == null || text.isEmpty) null
    else {
      try parse(dataType, text, zone)
      catch {
        case NonFatal(e) =>
          foundText(dataType, text, zone).getOrElse(throw invalid(column, text, dataType, e))
      }
    }

  private def foundText(dataType: DataType, text: String, zone: ZoneId): Option[Any] =
    dataType match {
      case BooleanType | _: NumericType | TimestampNTZType =>
        Option(Cast(Literal(text), dataType, Some(zone.getId), EvalMode.LEGACY).eval())
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

  private def parse(dataType: DataType, text: String, zone: ZoneId): Any = dataType match {
    case _: StringType => UTF8String.fromString(text)
    case ByteType => text.toByte
    case ShortType => text.toShort
    case IntegerType => text.toInt
    case LongType => text.toLong
    case FloatType => special(text).map(_.toFloat).getOrElse(text.toFloat)
    case DoubleType => special(text).getOrElse(text.toDouble)
    case decimal: DecimalType => parseDecimal(decimal, text)
    case BooleanType => text.toBoolean
    case DateType => parsed(DateTimeUtils.stringToDate(UTF8String.fromString(text)))
    case TimestampType => parsed(DateTimeUtils.stringToTimestamp(UTF8String.fromString(text), zone))
    case TimestampNTZType =>
      val utf8 = UTF8String.fromString(text)
      parsed(DateTimeUtils.stringToTimestampWithoutTimeZone(utf8, allowTimeZone = false))
    case BinaryType => text.getBytes(StandardCharsets.UTF_8)
    case _ => unsupported(dataType)
  }

  private def parseDecimal(dataType: DecimalType, text: String): Decimal = {
    val exact = new JBigDecimal(text).setScale(dataType.scale)
    if (exact.precision > dataType.precision) throw new ArithmeticException("too many digits")
    Decimal(exact, dataType.precision, dataType.scale)
  }

  /** What other writers call the values that Java's parser knows under another name. */
  private def special(text: String): Option[Double] = text.toLowerCase(Locale.ROOT) match {
    case "inf" | "+inf" | "infinity" | "+infinity" => Some(Double.PositiveInfinity)
    case "-inf" | "-infinity" => Some(Double.NegativeInfinity)
    case "nan" => Some(Double.NaN)
    case _ => None
  }

  /**
   * Binary travels as text, so only bytes that are UTF-8 survive; others must not be changed
   * silently.
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

  private def pattern(text: String): DateTimeFormatter =
    DateTimeFormatter.ofPattern(text, Locale.ROOT)
}
