package io.deltaic.spark.sql.planning

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.connector.read.streaming.Offset
import org.apache.spark.sql.deltaic.PaddingInternals
import org.apache.spark.sql.deltaic.scan.StreamedRowsExec
import org.apache.spark.sql.execution.datasources.v2.{
  DataSourceV2Relation,
  DataSourceV2ScanRelation,
  PushDownUtils,
  StreamingDataSourceV2ScanRelation
}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.spark.stream.TableStream

/**
 * Plans a micro-batch of a [[TableStream]] as a scan of its files, which Spark's optimizer does not do for
 * streams: it neither prunes their columns nor pushes filters down.
 *
 * {{{
 *   Project p                                ProjectExec p
 *   +- Filter f, g                     =>    +- FilterExec f
 *      +- StreamingScanRelation [out]           +- StreamedRowsExec
 *                                                  +- scan of files that g selects [columns of p and f]
 * }}}
 */
private[spark] object StreamStrategy extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case PhysicalOperation(projects, filters, Batch(relation, stream, start, end)) =>
      val read = new ReadColumns(stream.source, relation.output)
      val table = DataSourceV2Relation
        .create(stream.source, None, None, CaseInsensitiveStringMap.empty())
        .copy(output = read.stored)
      val requested = projects.map(read.named)
      val builder = stream.scanBuilder(start, end)
      val remaining = builder.pushFilters(filters.map(read(_)))
      val (scan, columns) = PushDownUtils.pruneColumns(builder, table, requested, remaining)
      val rows =
        StreamedRowsExec(planLater(DataSourceV2ScanRelation(table, scan, columns)), stream)
      // Structs may be read with only some of their fields.
      val overColumns = ProjectionOverSchema(fromAttributes(columns), AttributeSet(columns))
      def narrowed(expression: Expression): Expression =
        expression.transformDown { case overColumns(narrower) => narrower }
      DeletionVectorStrategy.planned(
        requested.map(narrowed(_).asInstanceOf[NamedExpression]),
        remaining.map(narrowed),
        rows
      )
    case _ => Nil
  }

  /** The columns of the stream as the query references them, possibly in another letter case. */
  private final class ReadColumns(table: Table, columns: Seq[AttributeReference]) {
    private val padded = PaddingInternals.asRead(table, columns)
    private val byId = AttributeMap(columns.zip(padded.map(_._2)))

    /** The columns as the scan returns them. */
    def stored: Seq[AttributeReference] = padded.map(_._1)

    def apply(expression: Expression): Expression = expression.transformUp {
      case column: AttributeReference => byId.getOrElse(column, column)
    }

    def named(expression: NamedExpression): NamedExpression = apply(expression) match {
      case same: NamedExpression => same
      case other => Alias(other, expression.name)(expression.exprId)
    }
  }

  private object Batch {
    def unapply(
        plan: LogicalPlan
    ): Option[(StreamingDataSourceV2ScanRelation, TableStream[_], Offset, Offset)] = plan match {
      case relation: StreamingDataSourceV2ScanRelation =>
        (relation.stream, relation.startOffset, relation.endOffset) match {
          case (stream: TableStream[_], Some(start), Some(end)) =>
            Some((relation, stream, start, end))
          case _ => None
        }
      case _ => None
    }
  }
}
