package io.deltaic.spark.schema

import org.apache.spark.sql.types.{LongType, MetadataBuilder, StructField}

import io.deltaic.protocol.{Metadata, Protocol, TableFeatures}

/**
 * The row-tracking metadata of a table on which row tracking is enabled (Protocol § Reader Requirements
 * for Row Tracking). If a row was copied, its id and commit version are in materialized columns of the
 * data file, which are not part of the schema; for other rows they are derived from the file's `add`.
 *
 * @param rowIdColumn the column with the materialized row IDs
 * @param commitVersionColumn the column with the materialized row commit versions
 */
private[spark] final case class RowTracking(
    rowIdColumn: Option[String],
    commitVersionColumn: Option[String]
) {
  def rowId: Option[StructField] = rowIdColumn.map(StructField(_, LongType))
  def commitVersion: Option[StructField] = commitVersionColumn.map(StructField(_, LongType))

  /** The materialized columns of both, in the order of [[ScanColumns.rowTracking]]. */
  def materialized: Seq[StructField] =
    if (rowId.isDefined && commitVersion.isDefined) (rowId ++ commitVersion).toSeq else Nil

  /** With the field IDs that Iceberg has reserved for them, for files that its readers read. */
  def materializedWithFieldIds: Seq[StructField] =
    materialized.zip(RowTracking.FieldIds).map { case (column, id) =>
      val metadata = new MetadataBuilder().putLong(PhysicalSchema.ParquetFieldId, id)
      column.copy(metadata = metadata.build())
    }
}

private[spark] object RowTracking {

  /** Those of the materialized row IDs and row commit versions. */
  private val FieldIds = Seq(2147483540L, 2147483539L)

  /** None unless row tracking is supported and enabled: else files may lack row IDs. */
  def of(protocol: Protocol, metadata: Metadata): Option[RowTracking] =
    Option.when(TableFeatures.isEnabled(protocol, metadata, "rowTracking"))(of(metadata))

  /** The columns that the properties of a table name. */
  def of(metadata: Metadata): RowTracking = RowTracking(
    metadata.configuration.get("delta.rowTracking.materializedRowIdColumnName"),
    metadata.configuration.get("delta.rowTracking.materializedRowCommitVersionColumnName")
  )
}
