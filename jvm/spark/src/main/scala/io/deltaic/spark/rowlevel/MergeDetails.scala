package io.deltaic.spark.rowlevel

import org.apache.spark.sql.types.StructType

import io.deltaic.spark.schema.TableSchema

/**
 * Properties of a MERGE besides the rows it changes.
 *
 * @param parameters the operation parameters for the history
 * @param measured metrics counted while the statement runs
 * @param evolved the table's columns afterwards, if the statement evolves them
 * @param schema the columns to read: old rows have nulls in added columns
 */
private[spark] final class MergeDetails(
    val parameters: Map[String, String],
    val measured: () => Map[String, Long],
    val evolved: Option[StructType],
    val schema: () => TableSchema
)
