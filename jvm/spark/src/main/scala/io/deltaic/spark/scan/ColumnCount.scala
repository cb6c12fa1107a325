package io.deltaic.spark.scan

import scala.jdk.CollectionConverters._

import org.apache.parquet.schema.LogicalTypeAnnotation._
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.parquet.schema.{GroupType, Type}

/**
 * Counts the columns of a data file that a table would assign ids to: the columns, and the fields
 * of structs at any depth.
 *
 * Parquet has additional groups around the elements of an array, the entries of a map, and the
 * parts of a variant. Their layout depends on the writer (Parquet § Nested Types, backward
 * compatibility), and they have no ids.
 */
private[scan] object ColumnCount {

  def of(struct: GroupType): Int =
    struct.getFields.asScala.map(field => 1 + within(field)).sum

  private def within(field: Type): Int = field match {
    case group: GroupType =>
      (group.getLogicalTypeAnnotation, group.getFields.asScala.toSeq) match {
        case (_: ListLogicalTypeAnnotation, Seq(repeated)) => withinElement(group, repeated)
        case (
              _: MapLogicalTypeAnnotation | _: MapKeyValueTypeAnnotation,
              Seq(entries: GroupType)
            ) =>
          entries.getFields.asScala.map(within).sum
        case (_: VariantLogicalTypeAnnotation, _) => 0
        case (null, parts) if isVariant(parts) => 0
        case _ => of(group)
      }
    case _ => 0
  }

  /** The repeated field is the element itself, or a group around it. */
  private def withinElement(array: GroupType, repeated: Type): Int = repeated match {
    case group: GroupType if isAround(group, array.getName) => within(group.getType(0))
    case element => within(element)
  }

  private def isAround(repeated: GroupType, array: String): Boolean =
    repeated.getFieldCount == 1 && !repeated.getType(0).isRepetition(Type.Repetition.REPEATED) &&
    repeated.getName != "array" && repeated.getName != s"${array}_tuple"

  /** Writers need not annotate variants. */
  private def isVariant(parts: Seq[Type]): Boolean = {
    val names = parts.map(_.getName).toSet
    names("metadata") && (names("value") || names("typed_value")) && parts.forall {
      case part if part.getName == "typed_value" => true
      case part =>
        (part.getName == "metadata" || part.getName == "value") && part.isPrimitive &&
        part.asPrimitiveType.getPrimitiveTypeName == PrimitiveTypeName.BINARY &&
        part.getLogicalTypeAnnotation == null
    }
  }
}
