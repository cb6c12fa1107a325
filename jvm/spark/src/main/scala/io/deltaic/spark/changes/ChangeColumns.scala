package io.deltaic.spark.changes

import org.apache.spark.sql.types.{LongType, StringType, StructField, StructType, TimestampType}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.schema.{FileMetadata, TableSchema}

/** What the change data feed adds to the columns of a table (Protocol § Change Data Files). */
private[spark] object ChangeColumns {
  val ChangeType = "_change_type"
  val CommitVersion = "_commit_version"
  val CommitTimestamp = "_commit_timestamp"

  val Insert = "insert"
  val Delete = "delete"
  val UpdatePreimage = "update_preimage"
  val UpdatePostimage = "update_postimage"

  val changeTypeField: StructField = StructField(ChangeType, StringType)

  val fields: Seq[StructField] = Seq(
    changeTypeField,
    StructField(CommitVersion, LongType),
    StructField(CommitTimestamp, TimestampType)
  )

  /** The columns that identify a row of a table with row tracking, under delta-spark's names. */
  val rowField: StructField = StructField(
    FileMetadata.Name,
    StructType(
      Seq(FileMetadata.RowId, FileMetadata.RowCommitVersion)
        .map(StructField(_, LongType, nullable = false))
    ),
    nullable = false
  )

  /** The columns of a source of changes. */
  def of(source: ChangeSource, columns: StructType): StructType =
    addedTo(source.table.toString, columns, source.identifiesRows)

  /** @param identifiesRows whether each row has its row ID and row commit version */
  def addedTo(table: String, columns: StructType, identifiesRows: Boolean): StructType = {
    val added = (if (identifiesRows) Seq(rowField) else Nil) ++ fields
    added.find(f => columns.fieldNames.exists(_.equalsIgnoreCase(f.name))).foreach { taken =>
      throw DeltaicException(
        "DELTAIC_CHANGES_COLUMN_RESERVED",
        Map("table" -> table, "column" -> taken.name)
      )
    }
    added.foldLeft(columns)(_ add _)
  }

  /**
   * The columns of a table, and those of a feed that are constant within a file, which are read like partition columns.
   *
   * @param constantType whether the change type is one of them, or is stored in the files
   */
  def constantIn(columns: TableSchema, constantType: Boolean): TableSchema = {
    val constants = fields.filter(constantType || _.name != ChangeType)
    columns.copy(
      stored = constants.foldLeft(columns.stored)(_ add _),
      partitionColumns = columns.partitionColumns ++ constants.map(_.name)
    )
  }
}
