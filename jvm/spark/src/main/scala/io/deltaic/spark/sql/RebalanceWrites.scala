package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.write.{OptimizedWrite, WriteTargets}

/**
 * Shuffles the rows of a write before they are written, where that is asked for, so that few large files
 * come out of many small tasks: rows of a partition of the table come together, and adaptive execution
 * joins and splits what the shuffle yields to files of the size asked for. Without adaptive execution
 * the shuffle would only make more files, and there is none.
 *
 * {{{
 *   AppendData t          =>     AppendData t
 *   +- query                     +- RebalancePartitions p
 *                                   +- query
 * }}}
 */
private[spark] final case class RebalanceWrites(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (!spark.sessionState.conf.adaptiveExecutionEnabled) plan
    else
      plan.transform {
        case write @ AppendData(Target(table, relation), rows, options, _, _, None, _)
            if isAskedFor(table, relation, options) =>
          write.copy(query = rebalanced(table, relation, rows))
        case write @ OverwriteByExpression(
              Target(table, relation),
              _,
              rows,
              options,
              _,
              _,
              None,
              _
            ) if isAskedFor(table, relation, options) =>
          write.copy(query = rebalanced(table, relation, rows))
        case write @ OverwritePartitionsDynamic(Target(table, relation), rows, options, _, _, None)
            if isAskedFor(table, relation, options) =>
          write.copy(query = rebalanced(table, relation, rows))
      }

  private object Target {
    def unapply(plan: LogicalPlan): Option[(WriteTargets, DataSourceV2Relation)] = plan match {
      case relation @ ExtractV2Table(table: WriteTargets) =>
        Some((table, relation))
      case _ => None
    }
  }

  private def isAskedFor(
      table: WriteTargets,
      relation: DataSourceV2Relation,
      options: Map[String, String]
  ): Boolean = {
    val ofWrite = CaseInsensitiveMap(options)
    def option(name: String): Option[String] =
      ofWrite.get(name).orElse(Option(relation.options.get(name)))
    OptimizedWrite.isAskedFor(table.writeTarget, option)
  }

  private def rebalanced(
      table: WriteTargets,
      relation: DataSourceV2Relation,
      rows: LogicalPlan
  ): LogicalPlan = rows match {
    case done: RebalancePartitions => done
    case _ =>
      // Rows have the table's columns in its order by now.
      val ordinals = table.writeTarget.partitionColumns.map { column =>
        relation.output.indexWhere(_.name == column)
      }
      val by: Seq[Attribute] = ordinals.map(rows.output)
      RebalancePartitions(
        by,
        rows,
        optAdvisoryPartitionSize = Some(OptimizedWrite.fileSizeBytes(spark))
      )
  }
}
