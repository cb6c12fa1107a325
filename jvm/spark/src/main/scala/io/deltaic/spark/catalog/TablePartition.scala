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
import io.deltaic.spark.partition.PartitionValues
import io.deltaic.spark.scan.{FileSplits, SnapshotFiles, TableSchema}

/**
 * A partition of a table as a path names it, such as `/table/p=1/q=2`, for `load` to read that alone. Directories are
 * a convention that readers do not rely on, so the path is taken for a filter on partition values.
 *
 * @param path the partition's
 * @param values the strings of its partition columns, as directories spell them
 */
private[spark] final class TablePartition private (
    spark: SparkSession,
    val path: Path,
    table: Path,
    values: Seq[(String, String)],
    schema: TableSchema
) {

  /** @throws DeltaicThrowable if a value is none of its column's type */
  lazy val conditions: Seq[Expression] = {
    val zone = FileSplits.sessionZone(spark)
    values.map { case (column, text) =>
      val dataType = schema.stored(column).dataType
      val value = PartitionValues.fromLog(column, dataType, text, zone)
      EqualNullSafe(AttributeReference(column, dataType)(), Literal(value, dataType))
    }
  }

  /** Refuses a path where the table has nothing: it may be a slip. */
  def requireFiles(log: DeltaLog, snapshot: Snapshot): Unit = {
    val files = SnapshotFiles(spark, log, snapshot, schema, within = conditions)
    if (files.select(Nil, Nil).isEmpty) throw refusal
  }

  def refusal: DeltaicThrowable = TableLocation.isInside(path, table)
}

private[spark] object TablePartition {

  /** @throws DeltaicThrowable if the path names no partition columns of the table */
  def of(spark: SparkSession, path: Path, snapshot: Snapshot): TablePartition = {
    val schema = TableSchema.of(snapshot)
    val values = segments(path, snapshot.table).map { segment =>
      segment.split("=", 2) match {
        case Array(name, value) =>
          val text = ExternalCatalogUtils.unescapePathName(value)
          ExternalCatalogUtils.unescapePathName(name) ->
            (if (text == ExternalCatalogUtils.DEFAULT_PARTITION_NAME) null else text)
        case _ => throw TableLocation.isInside(path, snapshot.table)
      }
    }
    if (!values.forall { case (column, _) => schema.isPartition(column) })
      throw TableLocation.isInside(path, snapshot.table)
    new TablePartition(spark, path, snapshot.table, values, schema)
  }

  /** The directories that lead from a table to a path in it. */
  def segments(path: Path, table: Path): Seq[String] =
    Iterator.iterate(path)(_.getParent).takeWhile(p => p != null && p != table).map(_.getName)
      .toSeq.reverse
}
