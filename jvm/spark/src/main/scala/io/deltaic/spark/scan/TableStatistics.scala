package io.deltaic.spark.scan

import java.util.{Collections, Map => JMap, Optional, OptionalLong}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.connector.expressions.NamedReference
import org.apache.spark.sql.connector.read.Statistics
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.types._

import io.deltaic.spark.schema.TableSchema
import io.deltaic.spark.skipping.{FileStatsAggregator, RowAggregate}

/**
 * The statistics of a scan that are reported to the optimizer.
 *
 * For partition columns the log has all statistics. For data columns it has no distinct counts.
 * Spark's estimation requires them for a column with bounds, so bounds of data columns are not
 * reported.
 *
 * @param sizeBytes of what is read
 * @param rows the row statistics in the log; none if they were not loaded
 */
private[scan] final class TableStatistics(
    sizeBytes: Long,
    rows: Option[FileStatsAggregator],
    schema: TableSchema,
    readSchema: StructType
) extends Statistics {

  override def sizeInBytes(): OptionalLong = OptionalLong.of(sizeBytes)

  override def numRows(): OptionalLong = of(rows.flatMap(_.total))

  override def columnStats(): JMap[NamedReference, ColumnStatistics] = ofColumns

  /** Cached, because Spark requests them repeatedly and computing them visits all selected files. */
  private lazy val ofColumns: JMap[NamedReference, ColumnStatistics] = rows match {
    case Some(stats) =>
      val columns = readSchema.fieldNames.toSeq
        .filter(name => schema.isPartition(name) && isEstimated(schema.all(name).dataType))
      columns.flatMap(name => ofPartitionColumn(stats, name).map(reference(name) -> _)).toMap.asJava
    case None => Collections.emptyMap()
  }

  /** Spark's estimation fails on bounds of any other type. */
  private def isEstimated(dataType: DataType): Boolean = dataType match {
    case _: NumericType | DateType | TimestampType | BooleanType | StringType => true
    case _ => false
  }

  private def reference(name: String): NamedReference = SchemaInternals.reference(name)

  private def ofPartitionColumn(
      rows: FileStatsAggregator,
      name: String
  ): Option[ColumnStatistics] = {
    val column = AttributeReference(name, schema.all(name).dataType)()
    rows.aggregate(Seq(column), Seq(RowAggregate.CountRows)).map { groups =>
      val (nulls, values) = groups.partition(_(0) == null)
      val ordering: Ordering[Any] = TypeUtils.getInterpretedOrdering(column.dataType)
      new ColumnStatistics {
        override def distinctCount(): OptionalLong = OptionalLong.of(values.size.toLong)
        override def nullCount(): OptionalLong =
          OptionalLong.of(nulls.map(_(1).asInstanceOf[Long]).sum)
        override def min(): Optional[Object] = boxed(values.map(_(0)).minOption(ordering))
        override def max(): Optional[Object] = boxed(values.map(_(0)).maxOption(ordering))
      }
    }
  }

  private def boxed(value: Option[Any]): Optional[Object] =
    value.fold(Optional.empty[Object]())(v => Optional.of(v.asInstanceOf[Object]))

  private def of(number: Option[Long]): OptionalLong =
    number.fold(OptionalLong.empty())(OptionalLong.of)
}

private[scan] object TableStatistics {

  val unknown: Statistics = new Statistics {
    override def sizeInBytes(): OptionalLong = OptionalLong.empty()
    override def numRows(): OptionalLong = OptionalLong.empty()
  }

  /** For more files, reading the statistics costs more than it gains if cost-based optimization is off. */
  private val FilesReadAnyway = 10000

  def areCheap(files: Int, plansByCost: Boolean): Boolean =
    plansByCost || files <= FilesReadAnyway
}
