package io.deltaic.spark.changes

import org.apache.spark.sql.types.{LongType, StringType, StructField, TimestampType}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.scan.TableSchema

/** What the change data feed adds to the columns of a table (Protocol § Change Data Files). */
private[spark] object ChangeColumns {
  val ChangeType = "_change_type"
  val CommitVersion = "_commit_version"
  val CommitTimestamp = "_commit_timestamp"

  val Insert = "insert"
  val Delete = "delete"

  val fields: Seq[StructField] = Seq(
    StructField(ChangeType, StringType),
    StructField(CommitVersion, LongType),
    StructField(CommitTimestamp, TimestampType)
  )

  /**
   * The columns of a feed. The commit is the same for all rows of a file, so its columns are read
   * like partition columns; the kind of change is too, unless the file itself tells it.
   */
  def schema(table: String, columns: TableSchema, constantType: Boolean): TableSchema = {
    fields.find(f => columns.all.fieldNames.exists(_.equalsIgnoreCase(f.name))).foreach { taken =>
      throw new DeltaicException(
        "DELTAIC_CHANGES_COLUMN_TAKEN",
        Map("table" -> table, "column" -> taken.name)
      )
    }
    val constants = fields.map(_.name).filter(constantType || _ != ChangeType)
    columns.copy(
      all = fields.foldLeft(columns.all)(_ add _),
      partitionColumns = columns.partitionColumns ++ constants
    )
  }
}
