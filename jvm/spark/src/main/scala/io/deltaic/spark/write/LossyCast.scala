package io.deltaic.spark.write

import org.apache.spark.sql.types._

/** Which casts may lose a part of a value without an error. A value that is too large is the cast's own concern. */
private[spark] object LossyCast {

  /** Fractional digits, or the time of day: a value that lost them is another one when it is cast back. */
  def cuts(from: DataType, to: DataType): Boolean = (from, to) match {
    case (FloatType | DoubleType, ByteType | ShortType | IntegerType | LongType) => true
    case (other: DecimalType, ByteType | ShortType | IntegerType | LongType) => other.scale > 0
    case (other: DecimalType, own: DecimalType) => other.scale > own.scale
    case (TimestampType | TimestampNTZType, DateType) => true
    case _ => false
  }

  /** Few floating-point numbers are decimals of any scale: it is no mistake that a decimal rounds them. */
  def rounds(from: DataType, to: DataType): Boolean = (from, to) match {
    case (FloatType | DoubleType, _: DecimalType) => true
    case _ => false
  }
}
