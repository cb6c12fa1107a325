package io.deltaic.spark.catalog

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference,
  EqualNullSafe,
  Expression,
  Literal
}
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.DeltaicThrowable
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.scan.files.{FileSplits, ScanFilters, SnapshotFiles}
import io.deltaic.spark.schema.{PartitionValues, TableSchema}

/**
 * A partition of a table that `load` reads by its path, such as `/table/p=1/q=2`. Readers do not rely on the
 * directory layout, so the path is interpreted as a filter on partition values.
 *
 * @param path of the partition
 * @param values the strings of its partition columns, as in directory names
 */
private[spark] final class TablePartition private (
    spark: SparkSession,
    val path: Path,
    table: Path,
    values: Seq[(String, String)],
    schema: TableSchema
) {

  /** @throws DeltaicThrowable if a value cannot be parsed as its column's type */
  lazy val conditions: Seq[Expression] = {
    val zone = FileSplits.sessionZone(spark)
    values.map { case (column, text) =>
      val dataType = schema.stored(column).dataType
      val value = PartitionValues.fromLog(column, dataType, text, zone)
      EqualNullSafe(AttributeReference(column, dataType)(), Literal(value, dataType))
    }
  }

  /** Refuses a path of a partition without files, which may be a typing error. */
  def requireFiles(log: DeltaLog, snapshot: Snapshot): Unit = {
    val files = SnapshotFiles(spark, log, snapshot, schema, within = conditions)
    if (files.select(ScanFilters.none).isEmpty) throw refusal
  }

  def refusal: DeltaicThrowable = TableLocation.insideTableError(path, table)
}

private[spark] object TablePartition {

  /** @throws DeltaicThrowable if the path names a column that is not a partition column */
  def of(spark: SparkSession, path: Path, snapshot: Snapshot): TablePartition = {
    val schema = TableSchema.of(snapshot)
    val values = segments(path, snapshot.table).map { segment =>
      segment.split("=", 2) match {
        case Array(name, value) =>
          val text = ExternalCatalogUtils.unescapePathName(value)
          ExternalCatalogUtils.unescapePathName(name) ->
            (if (text == ExternalCatalogUtils.DEFAULT_PARTITION_NAME) null else text)
        case _ => throw TableLocation.insideTableError(path, snapshot.table)
      }
    }
    if (!values.forall { case (column, _) => schema.isPartition(column) })
      throw TableLocation.insideTableError(path, snapshot.table)
    new TablePartition(spark, path, snapshot.table, values, schema)
  }

  /** The directory names from a table to a path inside it. */
  def segments(path: Path, table: Path): Seq[String] =
    Iterator.iterate(path)(_.getParent).takeWhile(p => p != null && p != table).map(_.getName)
      .toSeq.reverse
}
