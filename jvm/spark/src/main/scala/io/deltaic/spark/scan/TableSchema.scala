package io.deltaic.spark.scan

import org.apache.spark.sql.types.{DataType, StructType}

import io.deltaic.protocol.{DeltaicException, Metadata}
import io.deltaic.spark.skipping.SkippingSchema

/**
 * The columns of a table as Spark types, split as they are stored: partition columns live in the
 * log, data columns in the files.
 */
private[spark] final case class TableSchema(
    all: StructType,
    partitionColumns: Seq[String],
    rowTracking: Option[RowTracking] = None
) {
  private val partitionNames = partitionColumns.toSet

  val data: StructType = StructType(all.filterNot(f => partitionNames(f.name)))

  /** In the order of the table's `partitionColumns`, which is the order of the directories. */
  val partition: StructType = StructType(partitionColumns.map(all.apply))

  def isPartition(column: String): Boolean = partitionNames(column)

  /** How filters on this table find what the log says about files. */
  lazy val skipping: SkippingSchema = new SkippingSchema(all, partitionColumns)
}

private[spark] object TableSchema {

  /** Reads a `metaData` action (Protocol § Schema Serialization Format: Spark's own JSON). */
  def of(table: String, metadata: Metadata): TableSchema = {
    val schema = DataType.fromJson(metadata.schemaString) match {
      case struct: StructType => struct
      case other =>
        throw new DeltaicException(
          "DELTAIC_INVALID_SCHEMA",
          Map("table" -> table, "reason" -> s"its top level is ${other.catalogString}, no struct")
        )
    }
    val missing = metadata.partitionColumns.filterNot(schema.fieldNames.contains)
    if (missing.nonEmpty)
      throw new DeltaicException(
        "DELTAIC_INVALID_SCHEMA",
        Map(
          "table" -> table,
          "reason" -> s"partition column ${missing.mkString(", ")} is not among its columns"
        )
      )
    TableSchema(schema, metadata.partitionColumns, RowTracking.of(metadata))
  }
}
