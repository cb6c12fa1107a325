package io.deltaic.spark.schema

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils

import io.deltaic.replay.Snapshot

/**
 * Where a partition's files are stored and how the log names them.
 *
 * The directory is a convention, not part of the protocol: readers take partition values from the
 * log alone. Two encodings are combined, so a value `50%` is stored in the directory `p=50%25`,
 * which is `p=50%2525` in the log.
 */
private[deltaic] object PartitionPaths {

  /**
   * `a=1/b=x%2Fy`, with Hive's escapes and Hive's name for null; empty without partition columns.
   */
  def directory(columns: Seq[String], values: Seq[String]): String =
    columns
      .lazyZip(values)
      .map((column, value) => shortened(ExternalCatalogUtils.getPartitionPathString(column, value)))
      .mkString(Path.SEPARATOR)

  /**
   * File systems limit names to 255 bytes and do not allow NUL, which Spark does not escape. No
   * reader takes a value from the directory, so a long name is truncated.
   */
  private def shortened(name: String): String = {
    val bytes = name.replace("\u0000", "%00").getBytes(UTF_8)
    val truncated = new String(bytes, 0, bytes.length.min(maxNameBytes), UTF_8)
    if (bytes.length <= maxNameBytes) truncated else truncated.replaceFirst("(\uFFFD|%.?)$", "")
  }

  private val maxNameBytes = 255

  /**
   * The `path` of an `add` for a file under the table's root: a URI (Protocol § Add File and Remove
   * File).
   */
  def logPath(relativePath: String): String = new Path(relativePath).toUri.toString
}

/** The folder names of a table's partitions: `a=1/b=x`, in the order of the columns. */
private[spark] object PartitionFolders {

  /** @return the folder for partition values as in the log */
  def of(snapshot: Snapshot): Map[String, String] => String = {
    val schema = TableSchema.of(snapshot)
    val inLog = schema.partitionColumns.map(schema.logName)
    values =>
      PartitionPaths.directory(
        schema.partitionColumns,
        inLog.map(name => values.get(name).filter(v => v != null && v.nonEmpty).orNull)
      )
  }
}
