package io.deltaic.spark.write

import org.apache.spark.sql.types._

/**
 * The schema of data files (Protocol § Column Mapping: files hold physical names and field ids).
 */
private[write] object PhysicalSchema {

  def nameOf(field: StructField, columnMapping: Boolean): String =
    if (columnMapping && field.metadata.contains(PhysicalName)) {
      field.metadata.getString(PhysicalName)
    } else field.name

  /**
   * Without the table's own metadata, which would go into every footer; with field ids under column
   * mapping.
   */
  def of(schema: StructType, columnMapping: Boolean): StructType =
    StructType(schema.map { field =>
      val metadata = new MetadataBuilder()
      if (columnMapping && field.metadata.contains(ColumnId)) {
        metadata.putLong(ParquetFieldId, field.metadata.getLong(ColumnId))
      }
      StructField(
        nameOf(field, columnMapping),
        typeOf(field.dataType, columnMapping),
        field.nullable,
        metadata.build()
      )
    })

  private def typeOf(dataType: DataType, columnMapping: Boolean): DataType = dataType match {
    case struct: StructType => of(struct, columnMapping)
    case array: ArrayType => array.copy(elementType = typeOf(array.elementType, columnMapping))
    case map: MapType =>
      map.copy(
        keyType = typeOf(map.keyType, columnMapping),
        valueType = typeOf(map.valueType, columnMapping)
      )
    case other => other
  }

  private val PhysicalName = "delta.columnMapping.physicalName"
  private val ColumnId = "delta.columnMapping.id"
  private val ParquetFieldId = "parquet.field.id"
}
