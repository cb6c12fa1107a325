package io.deltaic.spark.partition

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils

/**
 * Where a partition's files lie and how the log names them.
 *
 * The directory is a convention, not part of the protocol: readers take partition values from the
 * log alone. Two encodings stack up, so a value `50%` lies in the directory `p=50%25` and is named
 * `p=50%2525` in the log.
 */
private[deltaic] object PartitionPaths {

  /**
   * `a=1/b=x%2Fy`, with Hive's escapes and Hive's name for null; empty without partition columns.
   */
  def directory(columns: Seq[String], values: Seq[String]): String =
    columns
      .lazyZip(values)
      .map((column, value) => ExternalCatalogUtils.getPartitionPathString(column, value))
      .mkString(Path.SEPARATOR)

  /**
   * The `path` of an `add` for a file under the table's root: a URI (Protocol § Add File and Remove
   * File).
   */
  def logPath(relativePath: String): String = new Path(relativePath).toUri.toString
}
