package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.write.RowLevelOperation
import org.apache.spark.sql.deltaic.CountedChange
import org.apache.spark.sql.execution.datasources.v2._
import org.apache.spark.sql.execution.{LocalTableScanExec, SparkPlan, SparkStrategy, UnaryExecNode}
import org.apache.spark.sql.types.LongType

import io.deltaic.spark.catalog.{DeltaicTable, MergeTarget}
import io.deltaic.spark.rowlevel.{ChangedRows, CountsChangedRows, EndFilesExec, RowLevelChange}
import io.deltaic.spark.write.{SkippedWriteExec, TableWrite}

/**
 * Lets changes of our tables return their counts.
 *
 * {{{
 *   WriteDelta t          CountedChange [num_affected_rows]
 *   +- query        =>    +- WriteDelta t
 *                            +- query
 * }}}
 *
 * Only a statement is looked for, not every plan: what is inside of a [[CountedChange]] is run by
 * itself, as a plan that has been analysed.
 */
private[spark] object CountChanges extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case WithCTE(command: Command, definitions) => WithCTE(counted(command), definitions)
    case command => counted(command)
  }

  private def counted(command: LogicalPlan): LogicalPlan =
    commandOf(command).fold(command)(kind => CountedChange(command, columns(kind)))

  /** What it returns of a change. */
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

/** Plans a [[CountedChange]]: what it changed has been counted, or will be. */
private[spark] object CountedChangeStrategy extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case CountedChange(done: CommandResult, output) =>
      LocalTableScanExec(output, Seq(counts(done.commandPhysicalPlan, output)), None) :: Nil
    case CountedChange(command, output) => CountedChangeExec(planLater(command), output) :: Nil
    case _ => Nil
  }

  private[sql] def counts(plan: SparkPlan, output: Seq[Attribute]): InternalRow = {
    val rows = changedRows(plan)
    val all = Seq(rows.affected, rows.updated, rows.deleted, rows.inserted)
    InternalRow.fromSeq(all.take(output.length))
  }

  private def changedRows(plan: SparkPlan): ChangedRows = plan match {
    case DescribedChangeExec(change, _, _) => changedRows(change)
    case WriteDeltaExec(_, _, _, write: CountsChangedRows, _, _, _) => write.changedRows
    case EndFilesExec(write) => write.changedRows
    case InsertOnlyMergeExec(_, _, write: TableWrite, _, _) if !write.isCommitted => ChangedRows()
    case append: InsertOnlyMergeExec =>
      ChangedRows(inserted = append.metrics("numOutputRows").value)
    case _: SkippedWriteExec => ChangedRows()
    case other => throw new IllegalStateException(s"rows changed by ${other.nodeName}")
  }
}

/** Runs a change and then tells what it counted. */
private[spark] final case class CountedChangeExec(
    child: SparkPlan,
    override val output: Seq[Attribute]
) extends V2CommandExec
    with UnaryExecNode {

  override def nodeName: String = "ReportAffectedRows"

  override protected def run(): Seq[InternalRow] = {
    child.executeCollect()
    Seq(CountedChangeStrategy.counts(child, output))
  }

  override protected def withNewChildInternal(newChild: SparkPlan): CountedChangeExec =
    copy(child = newChild)
}
