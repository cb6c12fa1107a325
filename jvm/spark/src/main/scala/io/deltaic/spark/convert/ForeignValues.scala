package io.deltaic.spark.convert

import java.math.BigInteger
import java.util.{Map => JMap}

import scala.util.control.NonFatal

import org.apache.parquet.hadoop.metadata.FileMetaData
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.LogicalTypeAnnotation.{
  IntLogicalTypeAnnotation,
  TimeUnit,
  TimestampLogicalTypeAnnotation
}
import org.apache.parquet.schema.PrimitiveType
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName.{INT32, INT64, INT96}
import org.apache.parquet.{SemanticVersion, VersionParser}
import org.apache.spark.sql.types._

import io.deltaic.spark.write.files.FooterValues

/**
 * The values in the footer of a file that any writer may have written, as Spark reads the column.
 *
 * @param countsNaN whether NaN is among the values of which the footer has the largest; most writers leave it out
 * @param usesCurrentCalendar whether dates before 1582 are certainly of the calendar that Spark reads
 */
private[convert] final case class ForeignValues(countsNaN: Boolean, usesCurrentCalendar: Boolean)
    extends FooterValues {
  import ForeignValues._

  override def bound(
      dataType: DataType,
      column: PrimitiveType,
      value: Any,
      isMin: Boolean
  ): Option[Any] = (dataType, column.getPrimitiveTypeName) match {
    // NaN is the largest value of Spark: without it, the smallest one stays the same.
    case (FloatType | DoubleType, _) => Option.when(isMin || countsNaN)(value)
    case (_, INT96) => None
    case (DateType, _) =>
      Option.when(usesCurrentCalendar || value.asInstanceOf[Int] >= GregorianDay)(value)
    case (TimestampType, _) =>
      microseconds(column, value).filter(usesCurrentCalendar || _ >= StableMicros)
    case (TimestampNTZType, _) => microseconds(column, value)
    case (_, INT32) if isUnsigned(column) =>
      Some(Integer.toUnsignedLong(value.asInstanceOf[Int]))
    case (_: DecimalType, INT64) if isUnsigned(column) =>
      val whole = new BigInteger(java.lang.Long.toUnsignedString(value.asInstanceOf[Long]))
      Some(Binary.fromConstantByteArray(whole.toByteArray))
    case _ => Some(value)
  }

  private def microseconds(column: PrimitiveType, value: Any): Option[Long] =
    (column.getLogicalTypeAnnotation, value) match {
      case (timestamp: TimestampLogicalTypeAnnotation, stored: Long) =>
        timestamp.getUnit match {
          case TimeUnit.MICROS => Some(stored)
          case TimeUnit.MILLIS if stored.abs < Long.MaxValue / 1000 => Some(stored * 1000)
          case _ => None
        }
      case _ => None
    }

  private def isUnsigned(column: PrimitiveType): Boolean = column.getLogicalTypeAnnotation match {
    case number: IntLogicalTypeAnnotation => !number.isSigned
    case _ => false
  }
}

private[convert] object ForeignValues {

  def of(file: FileMetaData): ForeignValues =
    ForeignValues(countsNaN(file.getCreatedBy), usesCurrentCalendar(file.getKeyValueMetaData))

  /** From this version on, Parquet's own writer compares numbers as Java does, where NaN is the largest. */
  private val FirstWithNaN = new SemanticVersion(1, 10, 0)

  private def countsNaN(createdBy: String): Boolean =
    try {
      val writer = VersionParser.parse(createdBy)
      writer.application == "parquet-mr" && writer.hasSemanticVersion &&
      writer.getSemanticVersion.compareTo(FirstWithNaN) >= 0
    } catch { case NonFatal(_) => false }

  /** The calendar that a file has by what Spark writes to its footer. That of others depends on settings of the reader. */
  private def usesCurrentCalendar(entries: JMap[String, String]): Boolean = {
    val version = entries.get("org.apache.spark.version")
    version != null && version.takeWhile(_ != '.').toIntOption.exists(_ >= 3) &&
    !entries.containsKey("org.apache.spark.legacyDateTime")
  }

  /** 1582-10-15: from then on, dates are the same in both calendars. */
  private val GregorianDay = -141427

  /** 1900-01-01 in UTC: from then on, timestamps are the same in all time zones, too. */
  private val StableMicros = -2208988800000000L
}
