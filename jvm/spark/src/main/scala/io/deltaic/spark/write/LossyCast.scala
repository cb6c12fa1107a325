package io.deltaic.spark.write

import org.apache.spark.sql.types._

/** Casts that may truncate a value without an error. Overflow is handled by the cast itself. */
private[spark] object LossyCast {

  /** Whether a cast may drop fractional digits or the time of day, so that casting back does not restore the value. */
  def truncates(from: DataType, to: DataType): Boolean = (from, to) match {
    case (FloatType | DoubleType, ByteType | ShortType | IntegerType | LongType) => true
    case (other: DecimalType, ByteType | ShortType | IntegerType | LongType) => other.scale > 0
    case (other: DecimalType, own: DecimalType) => other.scale > own.scale
    case (TimestampType | TimestampNTZType, DateType) => true
    case _ => false
  }

  /** Whether a cast rounds floating-point numbers to decimals. Few are exact decimals, so this is not an error. */
  def rounds(from: DataType, to: DataType): Boolean = (from, to) match {
    case (FloatType | DoubleType, _: DecimalType) => true
    case _ => false
  }
}
