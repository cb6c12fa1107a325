package io.deltaic.spark.stream

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.types.DataTypeUtils.fromAttributes
import org.apache.spark.sql.connector.read.streaming.Offset
import org.apache.spark.sql.deltaic.StreamedRowsExec
import org.apache.spark.sql.execution.datasources.v2.{
  DataSourceV2Relation,
  DataSourceV2ScanRelation,
  StreamingDataSourceV2ScanRelation
}
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan, SparkStrategy}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

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
      val columns = relation.output
      val builder = stream.scanBuilder(stream.batch(start, end))
      val left = builder.pushFilters(filters.map(named(_, columns)))
      val asked = AttributeSet(projects ++ left)
      builder.pruneColumns(fromAttributes(columns.filter(asked.contains)))
      val scan = builder.build()
      val byName = columns.map(column => column.name -> column).toMap
      val scanned = DataSourceV2ScanRelation(
        DataSourceV2Relation.create(stream.source, None, None, CaseInsensitiveStringMap.empty()),
        scan,
        scan.readSchema().fieldNames.toSeq.map(byName)
      )
      val rows = StreamedRowsExec(planLater(scanned), stream)
      ProjectExec(
        projects,
        left.reduceOption(And).fold[SparkPlan](rows)(FilterExec(_, rows))
      ) :: Nil
    case _ => Nil
  }

  /** Queries may spell columns in another letter case. */
  private def named(filter: Expression, columns: Seq[Attribute]): Expression = {
    val byId = AttributeMap(columns.map(column => column -> column))
    filter.transform { case column: AttributeReference => byId.getOrElse(column, column) }
  }

  private object Batch {
    def unapply(
        plan: LogicalPlan
    ): Option[(StreamingDataSourceV2ScanRelation, TableStream, Offset, Offset)] = plan match {
      case relation: StreamingDataSourceV2ScanRelation =>
        (relation.stream, relation.startOffset, relation.endOffset) match {
          case (stream: TableStream, Some(start), Some(end)) => Some((relation, stream, start, end))
          case _ => None
        }
      case _ => None
    }
  }
}
