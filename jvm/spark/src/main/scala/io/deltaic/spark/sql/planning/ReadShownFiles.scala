package io.deltaic.spark.sql.planning

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{
  AnalysisHelper,
  CommandResult,
  LeafNode,
  LocalRelation,
  LogicalPlan,
  Statistics
}
import org.apache.spark.sql.catalyst.rules.Rule

import io.deltaic.spark.vacuum.ShownFiles

/** The many rows that a DRY RUN has found. */
private[spark] final case class ShownFilesRelation(
    files: ShownFiles,
    override val output: Seq[Attribute]
) extends LeafNode {

  override def computeStats(): Statistics = Statistics(
    sizeInBytes = BigInt(files.size) * output.map(_.dataType.defaultSize).sum,
    rowCount = Some(files.size)
  )
}

/**
 * Reads a large result of VACUUM with DRY RUN from where it is stored. Otherwise the optimizer would evaluate expressions
 * on all of its rows, in memory.
 *
 * {{{
 *   Project [...]               Project [...]
 *   +- CommandResult [path]     +- ShownFilesRelation [path]
 * }}}
 */
private[spark] object ReadShownFiles extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      plan.transformWithSubqueries {
        case result: CommandResult => read(result, result.rows, result.output)
        case local: LocalRelation => read(local, local.data, local.output)
      }
    }

  private def read(
      relation: LogicalPlan,
      rows: Seq[InternalRow],
      output: Seq[Attribute]
  ): LogicalPlan = ShownFiles.of(rows).fold(relation)(ShownFilesRelation(_, output))
}
