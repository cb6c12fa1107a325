package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.execution.datasources.{FileFormat, PartitionedFile}
import org.apache.spark.sql.types.{StructField, StructType}

/** The file metadata of Spark's file sources. */
object FileMetadataInternals {

  /** Names and types as in the `_metadata` of Spark's own file sources. */
  val fields: Seq[StructField] =
    FileFormat.BASE_METADATA_FIELDS.map(f => StructField(f.name, f.dataType, f.nullable))

  /** The values of some of these fields. */
  def values(split: PartitionedFile, wanted: Seq[StructField]): InternalRow =
    FileFormat.updateMetadataInternalRow(
      new GenericInternalRow(wanted.length),
      wanted.map(_.name),
      split,
      FileFormat.BASE_METADATA_EXTRACTORS,
      StructType(wanted).map(_.dataType)
    )
}
