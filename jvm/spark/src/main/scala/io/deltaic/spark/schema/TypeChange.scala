package io.deltaic.spark.schema

import scala.util.control.NonFatal

import org.apache.spark.sql.types._

/**
 * A change of a column's type; older data files still have the old type (Protocol § Type Change
 * Metadata).
 *
 * @param fieldPath what below the column has changed, such as `element` or `value.element`
 */
private[spark] final case class TypeChange(from: String, to: String, fieldPath: Option[String]) {

  /** Whether Spark's reader turns every value of the older type into the newer one. */
  def isSupported: Boolean = (TypeChange.parse(from), TypeChange.parse(to)) match {
    case (Some(older), Some(newer)) => TypeChange.widens(older, newer)
    case _ => false
  }
}

private[spark] object TypeChange {
  val Key: String = SkippingSchema.TypeChanges

  def of(field: StructField): Seq[TypeChange] =
    if (!field.metadata.contains(Key)) Nil
    else
      field.metadata.getMetadataArray(Key).toSeq.map { change =>
        val path = Option.when(change.contains("fieldPath"))(change.getString("fieldPath"))
        TypeChange(change.getString("fromType"), change.getString("toType"), path)
      }

  private def parse(name: String): Option[DataType] =
    try Some(DataType.fromJson(s""""$name""""))
    catch { case NonFatal(_) => None }

  /** Protocol § Type Widening lists these and no others. */
  def widens(older: DataType, newer: DataType): Boolean = (older, newer) match {
    case (ByteType, ShortType | IntegerType | LongType) => true
    case (ShortType, IntegerType | LongType) => true
    case (IntegerType, LongType) => true
    case (ByteType | ShortType | IntegerType | FloatType, DoubleType) => true
    case (DateType, TimestampNTZType) => true
    case (ByteType | ShortType | IntegerType, decimal: DecimalType) => holds(10, 0, decimal)
    case (LongType, decimal: DecimalType) => holds(20, 0, decimal)
    case (from: DecimalType, to: DecimalType) => holds(from.precision, from.scale, to)
    case _ => false
  }

  /** Whether Parquet stores both as the same type, so that readers need no conversion. */
  def isStoredAlike(older: DataType, newer: DataType): Boolean = (older, newer) match {
    case (ByteType, ShortType | IntegerType) | (ShortType, IntegerType) => true
    case _ => false
  }

  private def holds(precision: Int, scale: Int, wider: DecimalType): Boolean =
    wider.scale >= scale && wider.precision - wider.scale >= precision - scale
}
