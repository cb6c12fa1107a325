package io.deltaic.spark.write

import org.apache.spark.sql.types._

/** Which casts may take something off values without a word. Whether values are too large is the cast's own concern. */
private[spark] object LossyCast {

  /** What stands behind the point, or the time of day: what has been cut is not there when the value is cast back. */
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
