package io.deltaic.spark.schema

import org.apache.spark.sql.catalyst.util.INTERNAL_METADATA_KEYS
import org.apache.spark.sql.types._

/** The metadata keys of a table's columns, except those of column mapping and type changes. */
object ColumnKeys {

  /** Protocol § Default Columns; the second is the value of rows written before the column was added. */
  val CurrentDefault = "CURRENT_DEFAULT"
  val ExistsDefault = "EXISTS_DEFAULT"

  /** Protocol § Column Invariants. */
  val Invariant = "delta.invariants"

  /** Protocol § Generated Columns. */
  val GenerationExpression = "delta.generationExpression"

  /** Protocol § Identity Columns. */
  val IdentityStart = "delta.identity.start"
  val IdentityStep = "delta.identity.step"
  val IdentityHighWaterMark = "delta.identity.highWaterMark"
  val IdentityAllowExplicitInsert = "delta.identity.allowExplicitInsert"

  /**
   * Metadata that Spark adds to the columns of a plan and leaves in the schema of its rows. If a
   * table stored it, a plan that reads the table would take the column for a metadata column. The
   * last key is from an older Spark.
   */
  val OfPlans: Seq[String] = INTERNAL_METADATA_KEYS :+ "__supports_qualified_star"

  /** The columns and all nested fields, without these metadata keys. */
  def without(keys: Seq[String], columns: StructType): StructType =
    StructType(columns.map { field =>
      field.copy(
        dataType = withoutInside(keys, field.dataType),
        metadata = without(keys, field.metadata)
      )
    })

  def without(keys: Seq[String], metadata: Metadata): Metadata = {
    val found = keys.filter(metadata.contains)
    if (found.isEmpty) metadata
    else found.foldLeft(new MetadataBuilder().withMetadata(metadata))(_.remove(_)).build()
  }

  private def withoutInside(keys: Seq[String], dataType: DataType): DataType = dataType match {
    case struct: StructType => without(keys, struct)
    case array: ArrayType => array.copy(elementType = withoutInside(keys, array.elementType))
    case map: MapType =>
      map.copy(
        keyType = withoutInside(keys, map.keyType),
        valueType = withoutInside(keys, map.valueType)
      )
    case other => other
  }
}
