package io.deltaic.spark.sql.analysis.stream

import org.apache.spark.sql.catalyst.analysis.NamedRelation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.streaming.WriteToStream
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSource

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.stream.{PathSink, TableSink}

/**
 * Plans each batch of a stream into a table as an append or an overwrite of a batch query: its rows are cast, its
 * columns computed and its commit made as theirs.
 *
 * {{{
 *   WriteToMicroBatchDataSource sink       WriteToMicroBatchDataSource t
 *   +- query                         =>    +- Project [casts, defaults, generated columns]
 *                                             +- query
 * }}}
 *
 * The root stays, because Spark runs the batch by it: an append would be executed at once, without the state of the
 * stream. When a query starts, the rule replaces its sink by the [[TableSink]].
 */
private[spark] final case class ResolveStreamingWrites(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case stream: WriteToStream => sinkOf(stream.sink).fold(plan) { sink =>
        sink.requireSupported(stream.outputMode)
        stream.copy(sink = sink)
      }
    case Batch(write, sink, batchId) if write.query.resolved =>
      val append = sink.batch(
        spark,
        write.query,
        write.outputMode,
        write.writeOptions,
        write.queryId,
        batchId
      )
      spark.sessionState.analyzer.execute(append) match {
        case AppendData(table, rows, options, _, _, _, _) => planned(write, table, rows, options)
        case OverwriteByExpression(table, _, rows, options, _, _, _, _) =>
          planned(write, table, rows, options)
        case other => throw new IllegalStateException(s"not the write of a batch: $other")
      }
    case _ => plan
  }

  private def sinkOf(table: Table): Option[TableSink] = table match {
    case sink: PathSink => Some(sink.table)
    case named: DeltaicTable => Some(new TableSink(spark, named.log, Some(named.name())))
    case _ => None
  }

  private def planned(
      write: WriteToMicroBatchDataSource,
      table: NamedRelation,
      rows: LogicalPlan,
      options: Map[String, String]
  ): LogicalPlan = write.copy(relation = table, query = rows, writeOptions = options)

  private object Batch {
    def unapply(plan: LogicalPlan): Option[(WriteToMicroBatchDataSource, TableSink, Long)] =
      plan match {
        case write: WriteToMicroBatchDataSource =>
          for {
            sink <- Option(write.relation).collect { case ExtractV2Table(sink: TableSink) => sink }
            batchId <- write.batchId
          } yield (write, sink, batchId)
        case _ => None
      }
  }
}
