package io.deltaic.spark.schema

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.types._

import io.deltaic.protocol.SharedResource

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
    case (from: DecimalType, to: DecimalType) => holds(from.precision, from.scale, to)
    case (_, to: DecimalType) => decimalDigits.get(older.typeName).exists(holds(_, 0, to))
    case _ => wider.get(older.typeName).exists(_(newer.typeName))
  }

  /** Whether Parquet stores both as the same type, so that readers need no conversion. */
  def isStoredAlike(older: DataType, newer: DataType): Boolean =
    storedAlike.get(older.typeName).exists(_(newer.typeName))

  private lazy val changes = SharedResource.json("type-changes.json")
  private lazy val wider = byType("wider")(_.elements.asScala.map(_.asText).toSet)
  private lazy val decimalDigits = byType("decimalDigits")(_.asInt)
  private lazy val storedAlike = byType("storedAlike")(_.elements.asScala.map(_.asText).toSet)

  private def byType[A](table: String)(read: JsonNode => A): Map[String, A] =
    changes.get(table).properties().asScala.map(e => e.getKey -> read(e.getValue)).toMap

  private def holds(precision: Int, scale: Int, wider: DecimalType): Boolean =
    wider.scale >= scale && wider.precision - wider.scale >= precision - scale
}
