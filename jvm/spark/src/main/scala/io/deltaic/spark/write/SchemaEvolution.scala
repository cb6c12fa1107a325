package io.deltaic.spark.write

import java.util.Locale

import org.apache.spark.sql.types._

import io.deltaic.spark.scan.TypeChange

/**
 * A table's columns with those that rows bring along, at the end of the struct they belong to. What the
 * table may become is decided when the write is planned; this says what the rows are to be cast to.
 *
 * @param byName whether columns and fields go by their names; else by their positions
 * @param takes whether a column of the first type is to become one of the second, that of the rows
 */
private[spark] final class SchemaEvolution(
    byName: Boolean,
    takes: (DataType, DataType) => Boolean
) {

  def evolved(table: StructType, rows: StructType): StructType =
    if (byName) {
      val byKey = rows.fields.map(field => key(field) -> field).toMap
      val known = table.fields.map(key).toSet
      StructType(
        table.map(field => byKey.get(key(field)).fold(field)(followed(field, _))) ++
          rows.filterNot(field => known(key(field))).map(SchemaEvolution.added)
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

  /** What does not fit is left to Spark, which casts it or says that it cannot. */
  private def followed(table: DataType, rows: DataType): DataType = (table, rows) match {
    case (own: StructType, other: StructType) => evolved(own, other)
    case (own: ArrayType, other: ArrayType) =>
      own.copy(elementType = followed(own.elementType, other.elementType))
    case (own: MapType, other: MapType) =>
      own.copy(
        keyType = followed(own.keyType, other.keyType),
        valueType = followed(own.valueType, other.valueType)
      )
    // No file has a value of it yet.
    case (NullType, other) => SchemaEvolution.nullable(other)
    case (own, other) if takes(own, other) => other
    case (own, _) => own
  }

  private def key(field: StructField): String = SchemaEvolution.key(field)
}

private[spark] object SchemaEvolution {

  /** The dotted names of what the evolved columns have and the table's have not. */
  def addedTo(table: DataType, evolved: DataType): Seq[String] = (table, evolved) match {
    case (own: StructType, now: StructType) =>
      val known = own.fields.map(field => key(field) -> field).toMap
      now.toSeq.flatMap { field =>
        known.get(key(field)) match {
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

  /** The dotted names of what has another type in the evolved columns, with the type before and after. */
  def retyped(
      table: DataType,
      evolved: DataType,
      path: Seq[String] = Nil
  ): Seq[(String, DataType, DataType)] = (table, evolved) match {
    case (own: StructType, now: StructType) =>
      val known = now.fields.map(field => key(field) -> field).toMap
      own.toSeq.flatMap { field =>
        known.get(key(field)).toSeq.flatMap { after =>
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

  /** Older rows have no value for it, whatever the new ones have. */
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

  /** Of the changes that the protocol allows, those to a type of the same kind. */
  def isWider(table: DataType, rows: DataType): Boolean =
    table != rows && TypeChange.widens(table, rows) && {
      (table, rows) match {
        case (ByteType | ShortType | IntegerType, ShortType | IntegerType | LongType) => true
        case (FloatType, DoubleType) => true
        case (_: DecimalType, _: DecimalType) => true
        case _ => false
      }
    }

  /** Of these, the ones that Iceberg reads: a decimal keeps its scale. */
  def isWiderInIceberg(table: DataType, rows: DataType): Boolean = isWider(table, rows) && {
    (table, rows) match {
      case (own: DecimalType, other: DecimalType) => own.scale == other.scale
      case _ => true
    }
  }

  /**
   * Whether the rows' type is wider, or a cast to the table's would take something off values without a
   * word: what stands behind the point, or the time of day. Of values that are too large, the session's policy of casts decides.
   */
  def exceeds(table: DataType, rows: DataType): Boolean =
    isWider(table, rows) || cuts(table, rows)

  /** Whether a cast to the table's type could take something off values without a word. */
  def cuts(table: DataType, rows: DataType): Boolean =
    LossyCast.cuts(rows, table) || LossyCast.rounds(rows, table)

  private def key(field: StructField): String = field.name.toLowerCase(Locale.ROOT)
}
