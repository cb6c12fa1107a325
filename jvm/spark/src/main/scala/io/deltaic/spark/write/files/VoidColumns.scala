package io.deltaic.spark.write.files

import org.apache.spark.sql.catalyst.expressions.{
  CreateNamedStruct,
  Expression,
  GetStructField,
  If,
  IsNull,
  Literal
}
import org.apache.spark.sql.types._

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/** Columns of type void are null in every row, and are not stored in data files (Protocol § Primitive Types). */
private[write] object VoidColumns {

  /** Whether there is a void type at any depth. */
  def areIn(dataType: DataType): Boolean = dataType match {
    case NullType => true
    case struct: StructType => struct.exists(field => areIn(field.dataType))
    case array: ArrayType => areIn(array.elementType)
    case map: MapType => areIn(map.keyType) || areIn(map.valueType)
    case _ => false
  }

  def isVoid(dataType: DataType): Boolean = dataType == NullType

  /**
   * The columns in data files.
   *
   * @throws DeltaicThrowable for an array or a map of void, and for a struct without other fields
   */
  def without(table: String, columns: StructType): StructType =
    if (!areIn(columns)) columns
    else
      StructType(columns.filterNot(c => isVoid(c.dataType)).map { column =>
        column.copy(dataType = without(table, column.dataType, Seq(column.name)))
      })

  private def without(table: String, dataType: DataType, path: Seq[String]): DataType =
    dataType match {
      case struct: StructType if areIn(struct) =>
        val kept = struct.filterNot(field => isVoid(field.dataType))
        if (kept.isEmpty) throw refused(table, path)
        StructType(kept.map { field =>
          field.copy(dataType = without(table, field.dataType, path :+ field.name))
        })
      case _: ArrayType | _: MapType if areIn(dataType) => throw refused(table, path)
      case other => other
    }

  /** A value without its void fields. */
  def cut(value: Expression): Expression = value.dataType match {
    case struct: StructType if areIn(struct) =>
      val fields = struct.fields.zipWithIndex.filterNot { case (f, _) => isVoid(f.dataType) }
      val kept = CreateNamedStruct(fields.toSeq.flatMap { case (field, place) =>
        Seq(Literal(field.name), cut(GetStructField(value, place)))
      })
      if (value.nullable) If(IsNull(value), Literal(null, kept.dataType), kept) else kept
    case _ => value
  }

  /** The error for a write to a table whose columns are all void. */
  def alone(table: String): DeltaicThrowable =
    DeltaicException("DELTAIC_VOID_COLUMNS_ALONE", Map("table" -> table))

  private def refused(table: String, path: Seq[String]): DeltaicThrowable = DeltaicException(
    "DELTAIC_VOID_COLUMN_NOT_WRITABLE",
    Map("table" -> table, "column" -> path.mkString("."))
  )
}
