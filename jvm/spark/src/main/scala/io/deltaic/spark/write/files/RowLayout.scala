package io.deltaic.spark.write.files

import org.apache.spark.sql.types.StructType

import io.deltaic.spark.schema.PhysicalSchema

/**
 * The columns of the rows of a write, and which of them are in data files.
 *
 * @param schema            the columns of the rows, partition columns included, under users' names
 * @param numRowTrackingColumns how many of them, at the end, are materialized row tracking columns of copied
 *                          rows, which are not columns of the table
 * @param partitionOrdinals the positions of the partition columns in a row, in partition order
 * @param columnMapping     whether files and log have physical names (Protocol § Column Mapping)
 * @param materializesPartitions whether the values of partition columns are in the files, too
 */
private[write] final case class RowLayout(
    schema: StructType,
    numRowTrackingColumns: Int,
    partitionOrdinals: Array[Int],
    columnMapping: Boolean,
    materializesPartitions: Boolean
) {

  /** The columns in the files, by their positions in a row. */
  @transient lazy val fileOrdinals: Array[Int] =
    schema.indices
      .filterNot(i => partitionOrdinals.contains(i) || VoidColumns.isVoid(schema(i).dataType))
      .toArray ++ (if (materializesPartitions) partitionOrdinals else Array.empty[Int])

  /** Whether files contain exactly the columns of a row. */
  @transient lazy val storesWholeRows: Boolean =
    partitionOrdinals.isEmpty && !VoidColumns.areIn(schema)

  /** The partition columns' names in the log and in directories: physical under column mapping. */
  @transient lazy val partitionNames: Array[String] =
    partitionOrdinals.map(i => PhysicalSchema.nameOf(schema(i), columnMapping))
}
