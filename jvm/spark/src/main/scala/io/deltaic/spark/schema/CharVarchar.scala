package io.deltaic.spark.schema

import scala.util.Try

import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.types._

/**
 * CHAR and VARCHAR types, which are strings in the log: the metadata of a column has its declared type,
 * with the lengths at every depth.
 */
private[spark] object CharVarchar {

  /** The columns as the log has them. */
  def stored(columns: StructType): StructType = {
    val strings = CharVarcharUtils.replaceCharVarcharWithStringInSchema(columns)
    StructType(strings.zip(columns).map { case (column, declared) =>
      readable(column, declared.dataType)
    })
  }

  /** Spark does not quote field names in the type string, and could not parse names that need quotes. */
  private def readable(column: StructField, declared: DataType): StructField =
    if (column.dataType == declared || Try(CharVarcharUtils.getRawType(column.metadata)).isSuccess)
      column
    else {
      val metadata = new MetadataBuilder().withMetadata(column.metadata)
      column.copy(metadata = metadata.putString(TypeKey, declared.sql).build())
    }

  private val TypeKey = "__CHAR_VARCHAR_TYPE_STRING"

  /** The declared type of a column, with the comments and nullability that the type in the metadata lacks. */
  def typeOf(column: StructField): DataType =
    CharVarcharUtils.getRawType(column.metadata).fold(column.dataType)(limited(column.dataType, _))

  /** Whether the column has CHAR or VARCHAR types nested in it, which Spark does not see. */
  def areWithin(column: StructField): Boolean = typeOf(column) match {
    case _: CharType | _: VarcharType => false
    case declared => declared != column.dataType
  }

  private def limited(stored: DataType, declared: DataType): DataType = (stored, declared) match {
    case (StructType(fields), StructType(others)) if fields.length == others.length =>
      StructType(fields.zip(others).map { case (field, other) =>
        field.copy(dataType = limited(field.dataType, other.dataType))
      })
    case (ArrayType(element, nulls), ArrayType(other, _)) =>
      ArrayType(limited(element, other), nulls)
    case (MapType(key, value, nulls), MapType(otherKey, otherValue, _)) =>
      MapType(limited(key, otherKey), limited(value, otherValue), nulls)
    case (StringType, declared @ (_: CharType | _: VarcharType)) => declared
    case _ => stored
  }
}
