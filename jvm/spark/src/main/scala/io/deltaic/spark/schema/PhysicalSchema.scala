package io.deltaic.spark.schema

import org.apache.spark.sql.types._

/**
 * The columns of a table as its data files name them (Protocol § Column Mapping).
 *
 * The table's column metadata is not copied: writers would put it into every footer, and Spark's
 * reader would interpret some of it.
 */
private[spark] object PhysicalSchema {
  val PhysicalName = "delta.columnMapping.physicalName"
  val ColumnId = "delta.columnMapping.id"

  /** What Spark's readers and writers of Parquet take the id from. */
  val ParquetFieldId = "parquet.field.id"

  /** Ids of elements, keys and values, by their paths (Protocol § Iceberg Compatibility V2). */
  val NestedIds = "parquet.field.nested.ids"

  def nameOf(field: StructField, columnMapping: Boolean): String =
    if (columnMapping && field.metadata.contains(PhysicalName)) {
      field.metadata.getString(PhysicalName)
    } else field.name

  /** The schema of new data files, with field ids under column mapping. */
  def of(schema: StructType, columnMapping: Boolean): StructType =
    StructType(schema.map { field =>
      StructField(
        nameOf(field, columnMapping),
        typeOf(field.dataType, columnMapping),
        field.nullable,
        if (columnMapping) fieldIds(field) else Metadata.empty
      )
    })

  /**
   * The column to request from the Parquet reader, possibly with only some nested fields.
   * Everything is nullable, since older files may lack it. In mode `id` a column has a field id,
   * and a name that no file uses: otherwise the reader would also find a column by its name.
   *
   * @param wanted the requested column under its logical names
   * @param stored the columns that contain it, as in the table's metadata
   */
  def requested(wanted: StructField, stored: StructType, mapping: ColumnMapping): StructField =
    SkippingSchema.find(stored, wanted.name) match {
      case None => StructField(wanted.name, wanted.dataType)
      case Some(field) =>
        val dataType = requestedType(wanted.dataType, field.dataType, mapping)
        mapping match {
          case ColumnMapping.NoMapping => StructField(field.name, dataType)
          case ColumnMapping.ByName => StructField(field.metadata.getString(PhysicalName), dataType)
          case ColumnMapping.ById =>
            val name = s"$FieldIdName${field.metadata.getLong(ColumnId)}"
            StructField(name, dataType, nullable = true, fieldId(field))
        }
    }

  /** Whether it is a name that [[requested]] assigns in mode `id`. */
  def isByFieldId(name: String): Boolean = name.startsWith(FieldIdName)

  private def requestedType(
      wanted: DataType,
      stored: DataType,
      mapping: ColumnMapping
  ): DataType = (wanted, stored) match {
    case (wanted: StructType, stored: StructType) =>
      StructType(wanted.map(requested(_, stored, mapping)))
    case (wanted: ArrayType, stored: ArrayType) =>
      ArrayType(requestedType(wanted.elementType, stored.elementType, mapping))
    case (wanted: MapType, stored: MapType) =>
      MapType(
        requestedType(wanted.keyType, stored.keyType, mapping),
        requestedType(wanted.valueType, stored.valueType, mapping)
      )
    case (leaf, _) => leaf
  }

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

  /** The protocol's, and delta-spark's own. */
  private val nestedIdKeys = Seq(NestedIds, "delta.columnMapping.nested.ids")

  /** Columns that are not in the schema of the table have only that of the file. */
  private val fieldIdKeys = Seq(ColumnId, ParquetFieldId)

  private def fieldIds(field: StructField): Metadata = {
    val ids = new MetadataBuilder().withMetadata(fieldId(field))
    nestedIdKeys
      .find(field.metadata.contains)
      .foreach(key => ids.putMetadata(NestedIds, field.metadata.getMetadata(key)))
    ids.build()
  }

  private def fieldId(field: StructField): Metadata =
    fieldIdKeys.find(field.metadata.contains).fold(Metadata.empty) { key =>
      new MetadataBuilder().putLong(ParquetFieldId, field.metadata.getLong(key)).build()
    }

  private val FieldIdName = "__deltaic_field_id_"
}
