package io.deltaic.spark.changes

import org.apache.spark.sql.types.{LongType, StringType, StructField, StructType, TimestampType}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.scan.TableSchema

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

  /** The columns of a feed. */
  def addedTo(table: String, columns: StructType): StructType = {
    fields.find(f => columns.fieldNames.exists(_.equalsIgnoreCase(f.name))).foreach { taken =>
      throw DeltaicException(
        "DELTAIC_CHANGES_COLUMN_TAKEN",
        Map("table" -> table, "column" -> taken.name)
      )
    }
    fields.foldLeft(columns)(_ add _)
  }

  /**
   * The columns of a table and those of a feed that are the same for all rows of a file: these are
   * read like partition columns.
   *
   * @param constantType whether the kind of change is one of them, or stored in the files
   */
  def constantIn(columns: TableSchema, constantType: Boolean): TableSchema = {
    val constants = fields.filter(constantType || _.name != ChangeType)
    columns.copy(
      stored = constants.foldLeft(columns.stored)(_ add _),
      partitionColumns = columns.partitionColumns ++ constants.map(_.name)
    )
  }
}
