package io.deltaic.spark.scan

import java.util.OptionalLong

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference,
  Expression,
  GenericInternalRow,
  GetStructField
}
import org.apache.spark.sql.connector.expressions.aggregate._
import org.apache.spark.sql.connector.expressions.{Expression => V2Expression, NamedReference}
import org.apache.spark.sql.connector.read.{LocalScan, Statistics, SupportsReportStatistics}
import org.apache.spark.sql.types.{LongType, StructField, StructType}

import io.deltaic.spark.skipping.RowAggregate

/**
 * Computes `COUNT`, `MIN` and `MAX` from the log, grouped by partition columns, if the log has the
 * exact result. No data file is opened and no job runs.
 */
private[scan] object MetadataAggregation {

  /**
   * None where a file would have to be read.
   *
   * @param scan the scan to replace, whose filters are all fully evaluated on partition values, so
   *   that every row of the selected files matches
   */
  def of(
      scan: TableScan,
      aggregation: Aggregation
  ): Option[MetadataOnlyScan] = {
    val columns = new Columns(scan.schema.all)
    for {
      groupBy <- all(aggregation.groupByExpressions.toSeq.map(columns.topLevel))
      aggregates <- all(aggregation.aggregateExpressions.toSeq.map(columns.aggregate))
      result <- scan.files.aggregate(scan.filters, groupBy, aggregates)
    } yield {
      val fields = groupBy.map(c => StructField(c.name, c.dataType)) ++
        aggregates.zipWithIndex.map { case (a, i) => StructField(s"aggregate_$i", typeOf(a)) }
      new MetadataOnlyScan(
        scan,
        StructType(fields),
        result.map(values => new GenericInternalRow(values): InternalRow).toArray,
        aggregation.aggregateExpressions.mkString(", ")
      )
    }
  }

  private def typeOf(aggregate: RowAggregate) = aggregate match {
    case RowAggregate.CountRows | RowAggregate.CountValues(_) => LongType
    case RowAggregate.Min(column) => column.dataType
    case RowAggregate.Max(column) => column.dataType
  }

  private def all[T](options: Seq[Option[T]]): Option[Seq[T]] =
    if (options.forall(_.isDefined)) Some(options.flatten) else None

  /** Columns of the table as Spark's connectors refer to them. */
  private final class Columns(schema: StructType) {

    def aggregate(function: AggregateFunc): Option[RowAggregate] = function match {
      case _: CountStar => Some(RowAggregate.CountRows)
      case count: Count if !count.isDistinct =>
        column(count.column).map(RowAggregate.CountValues(_))
      case min: Min => column(min.column).map(RowAggregate.Min(_))
      case max: Max => column(max.column).map(RowAggregate.Max(_))
      case _ => None
    }

    def topLevel(reference: V2Expression): Option[AttributeReference] =
      column(reference).collect { case attribute: AttributeReference => attribute }

    private def column(reference: V2Expression): Option[Expression] = reference match {
      case named: NamedReference =>
        named.fieldNames.toList match {
          case name :: below =>
            schema.fields.find(_.name == name).flatMap { field =>
              below.foldLeft[Option[Expression]](
                Some(AttributeReference(field.name, field.dataType)())
              )((outer, inner) => outer.flatMap(this.field(_, inner)))
            }
          case Nil => None
        }
      case _ => None
    }

    private def field(struct: Expression, name: String): Option[Expression] =
      struct.dataType match {
        case fields: StructType if fields.fieldNames.contains(name) =>
          Some(GetStructField(struct, fields.fieldIndex(name), Some(name)))
        case _ => None
      }
  }
}

/**
 * The rows of an aggregate, in the place of a scan.
 *
 * @param replaced the replaced scan, which defines what the result depends on
 */
private[spark] final class MetadataOnlyScan(
    val replaced: TableScan,
    override val readSchema: StructType,
    result: Array[InternalRow],
    aggregates: String
) extends LocalScan
    with SupportsReportStatistics {
  override def rows(): Array[InternalRow] = result

  /** Spark assumes that a scan without a size is too large to broadcast. */
  override def estimateStatistics(): Statistics = new Statistics {
    override def numRows(): OptionalLong = OptionalLong.of(result.length.toLong)
    override def sizeInBytes(): OptionalLong =
      OptionalLong.of((result.length.toLong * readSchema.defaultSize).max(1L))
  }

  override def description(): String =
    s"deltaic ${replaced.table} version ${replaced.version}, from the log: $aggregates"
}
