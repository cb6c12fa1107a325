package io.deltaic.spark.rowlevel

import org.apache.spark.sql.types.StructType

import io.deltaic.spark.scan.TableSchema

/**
 * What a MERGE is besides the rows it changes.
 *
 * @param parameters what the history says of the statement
 * @param measured what has been counted while it ran
 * @param evolved the table's columns afterwards, where the statement adds to them
 * @param schema the columns as they are read: older rows as if they had those that are added
 */
private[spark] final class MergeTerms(
    val parameters: Map[String, String],
    val measured: () => Map[String, Long],
    val evolved: Option[StructType],
    val schema: () => TableSchema
)
