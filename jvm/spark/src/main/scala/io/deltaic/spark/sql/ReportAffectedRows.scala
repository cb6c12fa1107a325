package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.write.RowLevelOperation
import org.apache.spark.sql.deltaic.AffectedRowsReport
import org.apache.spark.sql.execution.datasources.v2._
import org.apache.spark.sql.execution.{LocalTableScanExec, SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.types.LongType

import io.deltaic.spark.catalog.{DeltaicTable, MergeTarget}
import io.deltaic.spark.rowlevel.{
  AffectedRowCounts,
  ReportsAffectedRows,
  MetadataOnlyDeleteExec,
  RowLevelChange
}
import io.deltaic.spark.write.{SkippedWriteExec, TableWrite}

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

/** Plans an [[AffectedRowsReport]], whose change has been executed, or will be. */
private[spark] object AffectedRowsStrategy extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case AffectedRowsReport(done: CommandResult, output) =>
      LocalTableScanExec(output, Seq(counts(done.commandPhysicalPlan, output)), None) :: Nil
    case AffectedRowsReport(command, output) =>
      AffectedRowsReportExec(planLater(command), output) :: Nil
    case _ => Nil
  }

  private[sql] def counts(plan: SparkPlan, output: Seq[Attribute]): InternalRow = {
    val rows = affectedRows(plan)
    val all = Seq(rows.affected, rows.updated, rows.deleted, rows.inserted)
    InternalRow.fromSeq(all.take(output.length))
  }

  private def affectedRows(plan: SparkPlan): AffectedRowCounts = plan match {
    case DescribedChangeExec(change, _, _) => affectedRows(change)
    case WriteDeltaExec(_, _, _, write: ReportsAffectedRows, _, _, _) => write.affectedRows
    case MetadataOnlyDeleteExec(write) => write.affectedRows
    case InsertOnlyMergeExec(_, _, write: TableWrite, _, _) if !write.isCommitted => AffectedRowCounts()
    case append: InsertOnlyMergeExec =>
      AffectedRowCounts(inserted = append.metrics("numOutputRows").value)
    case _: SkippedWriteExec => AffectedRowCounts()
    case other => throw new IllegalStateException(s"rows changed by ${other.nodeName}")
  }
}

/** Runs a change and then returns its counts. */
private[spark] final case class AffectedRowsReportExec(
    child: SparkPlan,
    override val output: Seq[Attribute]
) extends V2CommandExec
    with UnaryExecNode {

  override def nodeName: String = "ReportAffectedRows"

  override protected def run(): Seq[InternalRow] = {
    child.executeCollect()
    Seq(AffectedRowsStrategy.counts(child, output))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): AffectedRowsReportExec =
    copy(child = newChild)
}
