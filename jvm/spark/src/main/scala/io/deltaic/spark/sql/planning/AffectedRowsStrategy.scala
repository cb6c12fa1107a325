package io.deltaic.spark.sql.planning

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.deltaic.AffectedRowsReport
import org.apache.spark.sql.execution.datasources.v2._
import org.apache.spark.sql.execution.{LocalTableScanExec, SparkPlan, SparkStrategy, UnaryExecNode}

import io.deltaic.spark.rowlevel.{AffectedRowCounts, ReportsAffectedRows}
import io.deltaic.spark.write.TableWrite

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
    case InsertOnlyMergeExec(_, _, write: TableWrite, _, _) if !write.isCommitted =>
      AffectedRowCounts()
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
