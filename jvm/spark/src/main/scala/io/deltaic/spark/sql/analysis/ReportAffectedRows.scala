package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.write.RowLevelOperation
import org.apache.spark.sql.deltaic.AffectedRowsReport
import org.apache.spark.sql.execution.datasources.v2._
import org.apache.spark.sql.types.LongType

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.catalog.target.MergeTarget
import io.deltaic.spark.rowlevel.RowLevelChange

/**
 * Returns the counts of changed rows as the result of changes to Deltaic tables.
 *
 * {{{
 *   WriteDelta t          AffectedRowsReport [num_affected_rows]
 *   +- query        =>    +- WriteDelta t
 *                            +- query
 * }}}
 *
 * Only a statement that is not analyzed matches: the plan inside of an [[AffectedRowsReport]] is executed on its
 * own, as an analyzed plan.
 */
private[spark] object ReportAffectedRows extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case WithCTE(command: Command, definitions) => WithCTE(counted(command), definitions)
    case command => counted(command)
  }

  private def counted(command: LogicalPlan): LogicalPlan =
    commandOf(command).fold(command)(kind => AffectedRowsReport(command, columns(kind)))

  /** The output columns for a change. */
  def columnsOf(plan: LogicalPlan): Seq[Attribute] =
    commandOf(plan).fold(Seq.empty[Attribute])(columns)

  private def commandOf(plan: LogicalPlan): Option[RowLevelOperation.Command] = plan match {
    case write: WriteDelta if !write.analyzed =>
      write.operation match {
        case change: RowLevelChange => Some(change.command)
        case _ => None
      }
    case merge: InsertOnlyMerge if !merge.analyzed =>
      EliminateSubqueryAliases(merge.table) match {
        case ExtractV2Table(_: DeltaicTable | _: MergeTarget) =>
          Some(RowLevelOperation.Command.MERGE)
        case _ => None
      }
    case _ => None
  }

  private def columns(command: RowLevelOperation.Command): Seq[Attribute] = {
    val names = command match {
      case RowLevelOperation.Command.MERGE =>
        Seq("num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows")
      case _ => Seq("num_affected_rows")
    }
    names.map(AttributeReference(_, LongType)())
  }
}
