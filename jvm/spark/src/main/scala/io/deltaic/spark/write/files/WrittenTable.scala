package io.deltaic.spark.write.files

import org.apache.spark.sql.types.StructType

/**
 * What the files of a write depend on of their table.
 *
 * @param schema           the columns of the rows: the table's schema, with the nullability to enforce
 * @param partitionColumns as in the table's metadata
 * @param configuration    the table's properties
 * @param columnMapping    whether files and log have physical names (Protocol § Column Mapping)
 * @param materializesPartitions whether the values of partition columns are in the files, too
 * @param shredsVariants   whether fields of variants become columns of the files
 * @param clusteredBy      the columns, by their physical names, that always have statistics
 * @param tags             the tags of each file in the log
 */
private[spark] final case class WrittenTable(
    path: String,
    schema: StructType,
    partitionColumns: Seq[String],
    configuration: Map[String, String],
    columnMapping: Boolean = false,
    materializesPartitions: Boolean = false,
    shredsVariants: Boolean = false,
    clusteredBy: Seq[Seq[String]] = Nil,
    tags: Map[String, String] = Map.empty
)
