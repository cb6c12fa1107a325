package io.deltaic.replay.checkpoint

import java.io.StringWriter
import java.math.{BigDecimal, BigInteger}
import java.nio.{ByteBuffer, ByteOrder}
import java.time.format.{DateTimeFormatter, DateTimeFormatterBuilder}
import java.time.temporal.ChronoField.NANO_OF_SECOND
import java.time.{Instant, LocalDate, LocalDateTime, ZoneOffset}

import com.fasterxml.jackson.core.JsonGenerator
import org.apache.parquet.schema.LogicalTypeAnnotation._
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName.INT96
import org.apache.parquet.schema.{LogicalTypeAnnotation, PrimitiveType}

import io.deltaic.protocol.ActionJson

/**
 * The JSON statistics of a file whose checkpoint has them only as a struct, `stats_parsed` (Protocol § Checkpoints).
 * Values are written as in JSON statistics; binary columns have none.
 */
private[replay] object ParsedStats {

  private val JulianDayOfEpoch = 2440588L

  private val fraction =
    new DateTimeFormatterBuilder().appendFraction(NANO_OF_SECOND, 3, 9, true).toFormatter

  private val localDateTime = new DateTimeFormatterBuilder()
    .append(DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss"))
    .append(fraction)
    .toFormatter

  def toJson(stats: StructCell): String = {
    val text = new StringWriter(256)
    val json = ActionJson.factory.createGenerator(text)
    write(json, stats, jsonName)
    json.close()
    text.toString
  }

  /** The checkpoint schema in the protocol has a different name for the field that is `nullCount` elsewhere. */
  private def jsonName(field: String): String = if (field == "nullCounts") "nullCount" else field

  private def write(json: JsonGenerator, struct: StructCell, name: String => String): Unit = {
    json.writeStartObject()
    struct.fields.foreach {
      case (field, inner: StructCell) if inner.isDefined =>
        json.writeFieldName(name(field.getName))
        write(json, inner, identity)
      case (field, leaf: PrimitiveCell) if leaf.isDefined && hasJsonForm(leaf) =>
        json.writeFieldName(field.getName)
        write(json, leaf)
      case _ => ()
    }
    json.writeEndObject()
  }

  private def hasJsonForm(leaf: PrimitiveCell): Boolean = leaf match {
    case text: StringCell => text.schema.getLogicalTypeAnnotation != null
    case bytes: BytesCell =>
      bytes.schema.getPrimitiveTypeName == INT96 || scaleOf(bytes.schema).isDefined
    case _ => true
  }

  private def write(json: JsonGenerator, leaf: PrimitiveCell): Unit = leaf match {
    case text: StringCell => json.writeString(text.text)
    case number: DoubleCell => json.writeNumber(number.double)
    case bytes: BytesCell => writeBytes(json, bytes)
    case number: LongCell => writeLong(json, number)
  }

  private def writeBytes(json: JsonGenerator, cell: BytesCell): Unit =
    if (cell.schema.getPrimitiveTypeName == INT96) {
      val buffer = ByteBuffer.wrap(cell.bytes).order(ByteOrder.LITTLE_ENDIAN)
      val nanosOfDay = buffer.getLong
      val day = buffer.getInt - JulianDayOfEpoch
      json.writeString(instant(Instant.ofEpochSecond(day * 86400, nanosOfDay)))
    } else {
      json.writeNumber(new BigDecimal(
        new BigInteger(cell.bytes),
        scaleOf(cell.schema).getOrElse(0)
      ))
    }

  private def writeLong(json: JsonGenerator, cell: LongCell): Unit = {
    val value = cell.long
    cell.schema.getLogicalTypeAnnotation match {
      case _: DateLogicalTypeAnnotation => json.writeString(LocalDate.ofEpochDay(value).toString)
      case timestamp: TimestampLogicalTypeAnnotation =>
        val at = instantOf(value, timestamp.getUnit)
        json.writeString(if (timestamp.isAdjustedToUTC) instant(at) else local(at))
      case decimal: DecimalLogicalTypeAnnotation =>
        json.writeNumber(BigDecimal.valueOf(value, decimal.getScale))
      case _ if cell.schema.getPrimitiveTypeName == PrimitiveType.PrimitiveTypeName.BOOLEAN =>
        json.writeBoolean(value == 1)
      case _ => json.writeNumber(value)
    }
  }

  private def instantOf(value: Long, unit: TimeUnit): Instant = {
    val perSecond = unit match {
      case TimeUnit.MILLIS => 1000L
      case TimeUnit.MICROS => 1000000L
      case TimeUnit.NANOS => 1000000000L
    }
    val nanos = Math.floorMod(value, perSecond) * (1000000000L / perSecond)
    Instant.ofEpochSecond(Math.floorDiv(value, perSecond), nanos)
  }

  private def instant(at: Instant): String = s"${local(at)}Z"

  private def local(at: Instant): String =
    localDateTime.format(LocalDateTime.ofInstant(at, ZoneOffset.UTC))

  private def scaleOf(schema: PrimitiveType): Option[Int] = schema.getLogicalTypeAnnotation match {
    case decimal: LogicalTypeAnnotation.DecimalLogicalTypeAnnotation => Some(decimal.getScale)
    case _ => None
  }
}
