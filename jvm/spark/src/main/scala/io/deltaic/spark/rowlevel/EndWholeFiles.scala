package io.deltaic.spark.rowlevel

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, WriteDelta}
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.connector.write.{DeltaWrite, WriterCommitMessage}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2ScanRelation, LeafV2CommandExec}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

import io.deltaic.spark.scan.{TableScan, WholeFiles}

/**
 * Lets a DELETE read none of the files that lose all their rows, as partition values or bounds prove.
 * They are removed, and what is left of the statement is about the others; where none are left,
 * nothing runs but the commit.
 *
 * {{{
 *   WriteDelta                            WriteDelta [0-9, 10-19 as a whole]
 *   +- Project [row id]             =>    +- Project [row id]
 *      +- Filter [id < 25]                   +- Filter [id < 25]
 *         +- t [0-9, 10-19, 20-29]              +- t [20-29]
 * }}}
 *
 * The filters of the scan and those above it are the whole condition: a row ends if all of them are true.
 * A query of any other shape is left alone.
 *
 * It is a planner strategy because only now the files are chosen. It changes nothing but the plan: the write
 * in the plan it makes is another one, which knows what is left out of its query. That the statement has
 * read these files stays recorded, so that it conflicts with the same commits.
 */
private[spark] object EndWholeFiles extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case delete @ WriteDelta(_, _, query, _, _, _, Some(Ending(change, write))) =>
      query match {
        case PhysicalOperation(_, filters, ScanOf(scan)) if change.isTarget(scan) =>
          val (whole, others) = scan.splitOffWhole(filters)
          if (others.selectedFiles.isEmpty) EndFilesExec(write.ending(whole)) :: Nil
          else if (whole == WholeFiles.none) Nil
          else {
            val rest = query.transform {
              case relation @ ScanOf(same) if same eq scan =>
                relation.asInstanceOf[DataSourceV2ScanRelation].copy(scan = others)
            }
            val left = delete.copy(query = rest, write = Some(write.ending(whole)))
            left.copyTagsFrom(delete)
            planLater(left) :: Nil
          }
        case _ => Nil
      }
    case _ => Nil
  }

  /** The write of a DELETE that has not been looked at. */
  private object Ending {
    def unapply(write: DeltaWrite): Option[(RowLevelChange, RowLevelChange#ChangeWrite)] =
      write match {
        case own: RowLevelChange#ChangeWrite
            if own.change.command == Command.DELETE && !own.knowsWholeFiles =>
          Some((own.change, own))
        case _ => None
      }
  }

  private object ScanOf {
    def unapply(plan: LogicalPlan): Option[TableScan] = plan match {
      case relation: DataSourceV2ScanRelation =>
        Some(relation.scan).collect { case scan: TableScan => scan }
      case _ => None
    }
  }
}

/** Commits a change of which all is known beforehand: no row is looked at, and no job runs. */
private[spark] final case class EndFilesExec(write: DeltaWrite with CountsChangedRows)
    extends LeafV2CommandExec {
  override def output: Seq[Attribute] = Nil

  override def nodeName: String = "MetadataOnlyDelete"

  override protected def run(): Seq[InternalRow] = {
    val batch = write.toBatch
    val nothing = Array.empty[WriterCommitMessage]
    try batch.commit(nothing)
    catch {
      case e: Throwable =>
        try batch.abort(nothing)
        catch { case NonFatal(again) => e.addSuppressed(again) }
        throw e
    }
    Nil
  }
}
