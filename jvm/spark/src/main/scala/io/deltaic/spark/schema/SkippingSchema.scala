package io.deltaic.spark.schema

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, GetStructField}
import org.apache.spark.sql.types.{DataType, StructField, StructType}

/**
 * A column that is not a struct, nested in structs or not.
 *
 * @param statsPath the names of the column's statistics in the log, outermost first
 * @param typeChanged whether files may contain an older, narrower type (Protocol § Type Widening)
 */
final private[spark] case class LeafColumn(
    statsPath: Vector[String],
    dataType: DataType,
    typeChanged: Boolean
)

/** @param logName the name of the column's partition values in the log */
final private[spark] case class PartitionColumn(logName: String, dataType: DataType)

/**
 * Finds the columns of a table that a filter references.
 *
 * A filter's attributes are matched by name, exactly or else by the only name that differs only in
 * case: attributes of an analyzed plan may have the spelling of the query. Struct fields are
 * matched by name too, because the struct of a pruned scan numbers its fields differently. If the
 * type differs from the table's, the filter references something else, and no column is found.
 *
 * @param schema the table's schema, partition columns included
 * @param partitionColumns logical names
 * @param physicalName a field's name in the log (Protocol § Column Mapping), by default its own
 */
final class SkippingSchema(
    val schema: StructType,
    val partitionColumns: Seq[String],
    physicalName: StructField => String = _.name
) {
  private val partitions: Map[String, PartitionColumn] = partitionColumns.flatMap { name =>
    SkippingSchema.find(schema, name).map(f =>
      f.name -> PartitionColumn(physicalName(f), f.dataType)
    )
  }.toMap

  private[spark] def partitionColumn(attribute: Attribute): Option[PartitionColumn] =
    SkippingSchema
      .find(schema, attribute.name)
      .flatMap(f => partitions.get(f.name))
      .filter(_.dataType == attribute.dataType)

  /**
   * The leaf column that `column` names, an attribute or a field of structs below one; none for
   * other expressions.
   */
  private[spark] def leafColumn(column: Expression): Option[LeafColumn] = for {
    names <- namesOf(column)
    fields <- fieldsOf(schema, names)
    if !partitions.contains(fields.head.name)
    leaf = fields.last
    if leaf.dataType == column.dataType && !leaf.dataType.isInstanceOf[StructType]
  } yield LeafColumn(
    fields.map(physicalName).toVector,
    leaf.dataType,
    fields.exists(_.metadata.contains(SkippingSchema.TypeChanges))
  )

  private def namesOf(column: Expression): Option[List[String]] = column match {
    case a: Attribute => Some(List(a.name))
    case f: GetStructField => namesOf(f.child).map(_ :+ f.extractFieldName)
    case _ => None
  }

  private def fieldsOf(struct: StructType, names: List[String]): Option[List[StructField]] =
    names match {
      case name :: Nil => SkippingSchema.find(struct, name).map(List(_))
      case name :: below =>
        SkippingSchema.find(struct, name).flatMap { field =>
          field.dataType match {
            case inner: StructType => fieldsOf(inner, below).map(field :: _)
            case _ => None
          }
        }
      case Nil => None
    }
}

private[spark] object SkippingSchema {

  /** Protocol § Type Change Metadata. */
  val TypeChanges = "delta.typeChanges"

  def find(struct: StructType, name: String): Option[StructField] =
    struct.fields.find(_.name == name).orElse {
      struct.fields.filter(_.name.equalsIgnoreCase(name)) match {
        case Array(only) => Some(only)
        case _ => None
      }
    }
}
