package io.deltaic.spark.scan

import org.apache.spark.sql.types.{LongType, StructField}

import io.deltaic.protocol.{Metadata, Protocol, TableFeatures}

/**
 * What a table on which row tracking is enabled says about its rows (Protocol § Reader Requirements
 * for Row Tracking). Ids and commit versions that were preserved when a row moved are in columns of
 * the data files that are not part of the schema; for other rows they follow from the file's `add`.
 *
 * @param rowIdColumn the column with the materialized row ids
 * @param commitVersionColumn the column with the materialized row commit versions
 */
private[spark] final case class RowTracking(
    rowIdColumn: Option[String],
    commitVersionColumn: Option[String]
) {
  def rowId: Option[StructField] = rowIdColumn.map(StructField(_, LongType))
  def commitVersion: Option[StructField] = commitVersionColumn.map(StructField(_, LongType))

  /** The columns in which rows that move keep both, in the order of [[ScanColumns.tracked]]. */
  def materialized: Seq[StructField] =
    if (rowId.isDefined && commitVersion.isDefined) (rowId ++ commitVersion).toSeq else Nil
}

private[spark] object RowTracking {

  /** None unless row tracking is supported and enabled: else files may lack row ids. */
  def of(protocol: Protocol, metadata: Metadata): Option[RowTracking] = {
    val properties = metadata.configuration
    Option.when(TableFeatures.isEnabled(protocol, metadata, "rowTracking")) {
      RowTracking(
        properties.get("delta.rowTracking.materializedRowIdColumnName"),
        properties.get("delta.rowTracking.materializedRowCommitVersionColumnName")
      )
    }
  }
}
