package io.deltaic.spark.catalog

import scala.util.Try

import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.types._

/**
 * Texts of limited length, which are strings in the log: the metadata of a column has its type as it was
 * stated, limits at every depth among it.
 */
private[catalog] object LimitedTexts {

  /** The columns as the log has them. */
  def stored(columns: StructType): StructType = {
    val texts = CharVarcharUtils.replaceCharVarcharWithStringInSchema(columns)
    StructType(texts.zip(columns).map { case (text, stated) => readable(text, stated.dataType) })
  }

  /** Spark quotes no names where it writes the type, and could not read those that have to be. */
  private def readable(column: StructField, stated: DataType): StructField =
    if (column.dataType == stated || Try(CharVarcharUtils.getRawType(column.metadata)).isSuccess)
      column
    else {
      val metadata = new MetadataBuilder().withMetadata(column.metadata)
      column.copy(metadata = metadata.putString(TypeKey, stated.sql).build())
    }

  private val TypeKey = "__CHAR_VARCHAR_TYPE_STRING"

  /** The type of a column with its limits, and with what that in the metadata lacks: comments and nulls. */
  def typeOf(column: StructField): DataType =
    CharVarcharUtils.getRawType(column.metadata).fold(column.dataType)(limited(column.dataType, _))

  /** Whether texts within the column are limited, of which Spark knows nothing there. */
  def areWithin(column: StructField): Boolean = typeOf(column) match {
    case _: CharType | _: VarcharType => false
    case stated => stated != column.dataType
  }

  private def limited(stored: DataType, stated: DataType): DataType = (stored, stated) match {
    case (StructType(fields), StructType(others)) if fields.length == others.length =>
      StructType(fields.zip(others).map { case (field, other) =>
        field.copy(dataType = limited(field.dataType, other.dataType))
      })
    case (ArrayType(element, nulls), ArrayType(other, _)) =>
      ArrayType(limited(element, other), nulls)
    case (MapType(key, value, nulls), MapType(otherKey, otherValue, _)) =>
      MapType(limited(key, otherKey), limited(value, otherValue), nulls)
    case (StringType, text @ (_: CharType | _: VarcharType)) => text
    case _ => stored
  }
}
