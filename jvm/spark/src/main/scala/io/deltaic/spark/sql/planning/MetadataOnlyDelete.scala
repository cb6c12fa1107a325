package io.deltaic.spark.sql.planning

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, WriteDelta}
import org.apache.spark.sql.connector.write.RowLevelOperation.Command
import org.apache.spark.sql.connector.write.{DeltaWrite, WriterCommitMessage}
import org.apache.spark.sql.execution.datasources.v2.{
  DataSourceV2ScanRelation,
  LeafV2CommandExec,
  SupportsCustomDriverMetrics
}
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}

import io.deltaic.spark.rowlevel.{ReportsAffectedRows, RowLevelChange}
import io.deltaic.spark.scan.TableScan
import io.deltaic.spark.scan.files.FullyDeletedFiles

/**
 * Removes files without reading them if a DELETE deletes all their rows, which partition values or bounds
 * prove. The rest of the statement reads the other files; if there are none, only the commit runs.
 *
 * {{{
 *   WriteDelta                            WriteDelta [0-9, 10-19 as a whole]
 *   +- Project [row ID]             =>    +- Project [row ID]
 *      +- Filter [id < 25]                   +- Filter [id < 25]
 *         +- t [0-9, 10-19, 20-29]              +- t [20-29]
 * }}}
 *
 * The filters of the scan and those above it are the whole condition: a row is deleted if all of them are true.
 * A query of any other shape is not changed.
 *
 * It is a planner strategy because files are selected only at this point. It replaces the write in the plan by
 * one that has the files left out of its query. The read set of the statement still has these files, so that
 * it conflicts with the same commits.
 */
private[spark] object MetadataOnlyDelete extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case delete @ WriteDelta(_, _, query, _, _, _, Some(PlainDelete(change, write))) =>
      query match {
        case PhysicalOperation(_, filters, ScanOf(scan)) if change.isTarget(scan) =>
          val (fullyDeleted, others) = scan.splitOffFullyDeleted(filters)
          if (others.selectedFiles.isEmpty)
            MetadataOnlyDeleteExec(write.withFullyDeletedFiles(fullyDeleted)) :: Nil
          else if (fullyDeleted == FullyDeletedFiles.none) Nil
          else {
            val rest = query.transform {
              case relation @ ScanOf(same) if same eq scan =>
                relation.asInstanceOf[DataSourceV2ScanRelation].copy(scan = others)
            }
            val reduced =
              delete.copy(query = rest, write = Some(write.withFullyDeletedFiles(fullyDeleted)))
            reduced.copyTagsFrom(delete)
            planLater(reduced) :: Nil
          }
        case _ => Nil
      }
    case _ => Nil
  }

  /** The write of a DELETE to which this strategy has not been applied. */
  private object PlainDelete {
    def unapply(write: DeltaWrite): Option[(RowLevelChange, RowLevelChange#ChangeWrite)] =
      write match {
        case own: RowLevelChange#ChangeWrite
            if own.change.command == Command.DELETE && !own.hasFullyDeletedFiles =>
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

/** Commits a change that follows from metadata alone: no row is read, and no job runs. */
private[spark] final case class MetadataOnlyDeleteExec(write: DeltaWrite with ReportsAffectedRows)
    extends LeafV2CommandExec
    with SupportsCustomDriverMetrics {
  override def output: Seq[Attribute] = Nil

  override lazy val customMetrics: Map[String, SQLMetric] =
    createCustomMetrics(write.supportedCustomMetrics())

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
    postDriverMetrics(write.reportDriverMetrics())
    Nil
  }
}
