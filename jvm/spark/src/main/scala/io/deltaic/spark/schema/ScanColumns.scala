package io.deltaic.spark.schema

import org.apache.spark.sql.catalyst.util.RowDeltaUtils
import org.apache.spark.sql.connector.catalog.MetadataColumn
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.deltaic.scan.ParquetScanInternals
import org.apache.spark.sql.types.{DataType, LongType, StringType, StructField, StructType}

import io.deltaic.protocol.ColumnNames

/**
 * The columns a scan can produce beside the table's own. They are flat and, where they identify a
 * row, non-null: Spark's row-level operations accept nothing else as a row ID.
 */
private[spark] object ScanColumns {

  /** Whether new columns must not use the name, so that future versions have names for their columns. */
  def isReserved(name: String): Boolean =
    ColumnNames.folded(name).startsWith("__deltaic_") || isTaken(name)

  /** Whether scans use the name: for a column below, or in requests to Spark's Parquet reader. */
  def isTaken(name: String): Boolean = {
    val folded = ColumnNames.folded(name)
    taken(folded) || PhysicalSchema.isByFieldId(folded)
  }

  /**
   * Whether Spark's plan of a statement adds a column of that name to the table's. Spark finds its
   * own columns by name, case-insensitively if the session is configured so, and would confuse the
   * two.
   */
  def isTakenBy(command: Command, name: String): Boolean = {
    val folded = ColumnNames.folded(name)
    command != Command.DELETE &&
    (ofChanges(folded) || command == Command.MERGE && ofMerges(folded))
  }

  /** The data file's path, spelled as in the log; constant within a file. */
  val FilePath = "__deltaic_file_path"

  /** Position of the row in its data file, counted from zero (Protocol § Deletion Vectors). */
  val RowIndex = "__deltaic_row_index"

  /** The file's deletion vector as [[DeletionVectorConstant]] writes it; null for a file without. */
  val DeletionVector = "__deltaic_deletion_vector"

  /** Which rows of the file are part of a change (see the `changes` package); null for all. */
  val ChangedRows = "__deltaic_changed_rows"

  /** The values in the `add` of the row's file, for rows that were never copied (Protocol § Row Tracking). */
  val BaseRowId = "__deltaic_base_row_id"
  val DefaultRowCommitVersion = "__deltaic_default_row_commit_version"

  /** Id and commit version of a row (Protocol § Row Tracking), flat, for writers that copy the row. */
  val TrackedRowId = "__deltaic_row_id"
  val TrackedCommitVersion = "__deltaic_row_commit_version"

  val rowTracking: StructType =
    StructType(Seq(TrackedRowId, TrackedCommitVersion).map(StructField(_, LongType)))

  val baseRowIdField: StructField = StructField(BaseRowId, LongType, nullable = false)
  val defaultRowCommitVersionField: StructField =
    StructField(DefaultRowCommitVersion, LongType, nullable = false)

  private val taken: Set[String] = Set(
    FilePath,
    RowIndex,
    DeletionVector,
    ChangedRows,
    BaseRowId,
    DefaultRowCommitVersion,
    TrackedRowId,
    TrackedCommitVersion,
    ParquetScanInternals.generatedRowIndex.name
  )

  val rowIndexField: StructField = StructField(RowIndex, LongType, nullable = false)
  val deletionVectorField: StructField = StructField(DeletionVector, StringType, nullable = true)
  val changedRowsField: StructField = StructField(ChangedRows, StringType, nullable = true)

  /** The columns that identify a row for DELETE, UPDATE and MERGE. */
  val rowId: Seq[String] = Seq(FilePath, RowIndex)

  private val ofChanges: Set[String] =
    rowId.map(RowDeltaUtils.ORIGINAL_ROW_ID_VALUE_PREFIX + _).toSet + RowDeltaUtils.OPERATION_COLUMN

  private val ofMerges = Set("__row_id", "__row_from_source", "__row_from_target")

  /** The metadata columns of a table. */
  def metadataColumns(rowTracking: Option[RowTracking]): Array[MetadataColumn] = Array(
    FileMetadata.column(rowTracking),
    HiddenColumn(FilePath, StringType, "path of the data file, as in the log"),
    HiddenColumn(RowIndex, LongType, "position of the row in its data file, from 0")
  ) ++ rowTracking.map { _ =>
    HiddenColumn(TrackedRowId, LongType, "stable id of the row", isNullable = true)
  }

  /** Whether only row-level operations request the column, never a user. */
  def isHidden(name: String): Boolean =
    rowId.contains(name) || rowTracking.fieldNames.contains(name)

  /** Whether the column's value is the same for every row of a file. */
  def isFileConstant(name: String): Boolean =
    name == FilePath || name == DeletionVector || name == ChangedRows

  /** Spark preserves its value for the new row of an update, as it does for metadata columns by default. */
  private final case class HiddenColumn(
      override val name: String,
      override val dataType: DataType,
      override val comment: String,
      override val isNullable: Boolean = false
  ) extends MetadataColumn
}
