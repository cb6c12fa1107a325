package io.deltaic.spark.write

import org.apache.spark.sql.types._

import io.deltaic.protocol.ColumnNames
import io.deltaic.spark.schema.TypeChange

/**
 * A table's columns with those that rows add, at the end of the struct they belong to. The plan of the write decides
 * which changes the table allows; this computes the types to which rows are cast.
 *
 * @param byName whether columns and fields are matched by name; else by position
 * @param mayChangeTo whether a column of the first type changes to the second, that of the rows
 */
private[spark] final class SchemaEvolution(
    byName: Boolean,
    mayChangeTo: (DataType, DataType) => Boolean
) {

  def evolved(table: StructType, rows: StructType): StructType =
    if (byName) {
      val byKey = rows.fields.map(field => key(field) -> field).toMap
      val existing = table.fields.map(key).toSet
      StructType(
        table.map(field => byKey.get(key(field)).fold(field)(followed(field, _))) ++
          rows.filterNot(field => existing(key(field))).map(SchemaEvolution.added)
      )
    } else
      StructType(
        table.zipAll(rows, null, null).map {
          case (field, null) => field
          case (null, field) => SchemaEvolution.added(field)
          case (field, rows) => followed(field, rows)
        }
      )

  private def followed(field: StructField, rows: StructField): StructField =
    field.copy(dataType = followed(field.dataType, rows.dataType))

  /** Types that do not match are left to Spark, which casts values or reports an error. */
  private def followed(table: DataType, rows: DataType): DataType = (table, rows) match {
    case (own: StructType, other: StructType) => evolved(own, other)
    case (own: ArrayType, other: ArrayType) =>
      own.copy(elementType = followed(own.elementType, other.elementType))
    case (own: MapType, other: MapType) =>
      own.copy(
        keyType = followed(own.keyType, other.keyType),
        valueType = followed(own.valueType, other.valueType)
      )
    // No file has a value of a void column.
    case (NullType, other) => SchemaEvolution.nullable(other)
    case (own, other) if mayChangeTo(own, other) => other
    case (own, _) => own
  }

  private def key(field: StructField): String = SchemaEvolution.key(field)
}

private[spark] object SchemaEvolution {

  /** The dotted names of the evolved columns and fields that the table lacks. */
  def addedTo(table: DataType, evolved: DataType): Seq[String] = (table, evolved) match {
    case (own: StructType, now: StructType) =>
      val existing = own.fields.map(field => key(field) -> field).toMap
      now.toSeq.flatMap { field =>
        existing.get(key(field)) match {
          case None => Seq(field.name)
          case Some(before) =>
            addedTo(before.dataType, field.dataType).map(inner => s"${field.name}.$inner")
        }
      }
    case (own: ArrayType, now: ArrayType) =>
      addedTo(own.elementType, now.elementType).map("element." + _)
    case (own: MapType, now: MapType) =>
      addedTo(own.keyType, now.keyType).map("key." + _) ++
        addedTo(own.valueType, now.valueType).map("value." + _)
    case _ => Nil
  }

  /** The dotted names of the columns and fields whose type changes, with the type before and after. */
  def retyped(
      table: DataType,
      evolved: DataType,
      path: Seq[String] = Nil
  ): Seq[(String, DataType, DataType)] = (table, evolved) match {
    case (own: StructType, now: StructType) =>
      val evolvedFields = now.fields.map(field => key(field) -> field).toMap
      own.toSeq.flatMap { field =>
        evolvedFields.get(key(field)).toSeq.flatMap { after =>
          retyped(field.dataType, after.dataType, path :+ field.name)
        }
      }
    case (own: ArrayType, now: ArrayType) =>
      retyped(own.elementType, now.elementType, path :+ "element")
    case (own: MapType, now: MapType) =>
      retyped(own.keyType, now.keyType, path :+ "key") ++
        retyped(own.valueType, now.valueType, path :+ "value")
    case (own, now) => if (own == now) Nil else Seq((path.mkString("."), own, now))
  }

  /** An added column is nullable, since existing rows have no value for it. */
  private def added(field: StructField): StructField =
    field.copy(dataType = nullable(field.dataType), nullable = true)

  private def nullable(dataType: DataType): DataType = dataType match {
    case struct: StructType => StructType(struct.map(added))
    case array: ArrayType =>
      array.copy(elementType = nullable(array.elementType), containsNull = true)
    case map: MapType =>
      MapType(nullable(map.keyType), nullable(map.valueType), valueContainsNull = true)
    case other => other
  }

  /** Whether the protocol allows the change, and the types are of the same kind. */
  def isWider(table: DataType, rows: DataType): Boolean =
    table != rows && TypeChange.widens(table, rows) && {
      (table, rows) match {
        case (ByteType | ShortType | IntegerType, ShortType | IntegerType | LongType) => true
        case (FloatType, DoubleType) => true
        case (_: DecimalType, _: DecimalType) => true
        case _ => false
      }
    }

  /** Whether Iceberg also allows the change: a decimal keeps its scale. */
  def isWiderInIceberg(table: DataType, rows: DataType): Boolean = isWider(table, rows) && {
    (table, rows) match {
      case (own: DecimalType, other: DecimalType) => own.scale == other.scale
      case _ => true
    }
  }

  /**
   * Whether the rows' type is wider, or a cast to the table's would silently truncate values: fractional digits, or the
   * time of day. The session's store assignment policy decides about overflow.
   */
  def isWiderOrLossy(table: DataType, rows: DataType): Boolean =
    isWider(table, rows) || truncates(table, rows)

  /** Whether a cast to the table's type could truncate values silently. */
  def truncates(table: DataType, rows: DataType): Boolean =
    LossyCast.truncates(rows, table) || LossyCast.rounds(rows, table)

  private def key(field: StructField): String = ColumnNames.folded(field.name)
}
