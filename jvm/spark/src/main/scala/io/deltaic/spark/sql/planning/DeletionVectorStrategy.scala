package io.deltaic.spark.sql.planning

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.PhysicalOperation
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttribute
import org.apache.spark.sql.deltaic.scan.{PruningSubqueries, RuntimeFilterInternals}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SparkPlan, SparkStrategy}

import io.deltaic.spark.scan.TableScan
import io.deltaic.spark.scan.deletionvectors.{IsDeleted, ScanOfLiveRows}
import io.deltaic.spark.schema.ScanColumns

/**
 * Puts the deletion-vector filter into the plan of a scan that selected a file with a vector.
 *
 * {{{
 *   Project p                          ProjectExec p
 *   +- Filter f              =>        +- FilterExec f
 *      +- ScanRelation [out]              +- FilterExec NOT is_deleted(vector, row_index)
 *                                            +- scan [out, row_index, vector]
 * }}}
 *
 * It is a planner strategy, not an optimizer rule, because the files are selected only now. A scan
 * whose files have no vectors is unchanged, and limits, aggregates and statistics have been pushed down
 * for the rows the user sees. The two filters stay separate so that no expression of the user is
 * evaluated on a deleted row; code generation fuses them into one stage anyway. For the same reason the
 * scan is planned here: Spark's strategy would put a filter that awaits the value of a subquery right
 * above it. Such a filter is used twice: in the scan to skip files, and above the deletion-vector
 * filter to filter rows.
 *
 * Pruning subqueries that cost more than they can save are removed: see [[PruningSubqueries]].
 */
private[spark] object DeletionVectorStrategy extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case PhysicalOperation(projects, filters, ScanWithDeletionVectors(relation, scan)) =>
      val (pruning, rowFilters) = filters.partition(RuntimeFilterInternals.isForScanAlone)
      val (filteredScan, liveRow) = rewrite(relation, scan)
      val forScan = pruning.filter(PruningSubqueries.isKept) ++ awaitingIn(rowFilters, relation)
      val liveRows = FilterExec(liveRow, RuntimeFilterInternals.batchScan(filteredScan, forScan))
      planned(projects, rowFilters, liveRows)
    case PhysicalOperation(projects, filters, ScanAwaitingValues(relation))
        if filters.exists(isPlannedOtherwise(_, relation)) =>
      val (pruning, rowFilters) = filters.partition(RuntimeFilterInternals.isForScanAlone)
      val forScan = pruning.filter(PruningSubqueries.isKept) ++ awaitingIn(rowFilters, relation)
      planned(projects, rowFilters, RuntimeFilterInternals.batchScan(relation, forScan))
    case _ => Nil
  }

  /**
   * Spark's strategy retains all pruning subqueries. It passes the values of other subqueries to a
   * scan only where they are compared with columns for which it may plan pruning subqueries.
   */
  private def isPlannedOtherwise(filter: Expression, relation: DataSourceV2ScanRelation): Boolean =
    RuntimeFilterInternals.awaitsMergedValue(filter) || !PruningSubqueries.isKept(filter) ||
    RuntimeFilterInternals.awaitsValue(filter, skippable(relation))

  private def awaitingIn(
      filters: Seq[Expression],
      relation: DataSourceV2ScanRelation
  ): Seq[Expression] =
    filters.filter(RuntimeFilterInternals.awaitsValue(_, skippable(relation)))
      .map(RuntimeFilterInternals.withValuesApart)

  private def skippable(relation: DataSourceV2ScanRelation): AttributeSet = relation.scan match {
    case scan: TableScan =>
      AttributeSet(relation.output.filter(column => scan.skippableColumns(column.name)))
    case _ => AttributeSet.empty
  }

  /** The rows for which all filters are true, projected to the requested columns. */
  private[spark] def planned(
      projects: Seq[NamedExpression],
      filters: Seq[Expression],
      rows: SparkPlan
  ): Seq[SparkPlan] = {
    val matching = filters.reduceLeftOption(And).fold(rows)(FilterExec(_, rows))
    ProjectExec(projects, matching) :: Nil
  }

  /** The relation with the two columns the filter needs, and the filter's condition. */
  private def rewrite(
      relation: DataSourceV2ScanRelation,
      scan: ScanOfLiveRows
  ): (DataSourceV2ScanRelation, Expression) = {
    val filtered = scan.withDeletionVectors
    val byName = relation.output.map(a => a.name -> a).toMap
    val output = filtered.readSchema().fields.toSeq.map { field =>
      byName.getOrElse(field.name, toAttribute(field))
    }
    def column(name: String): Expression = output.find(_.name == name).get
    val deleted = IsDeleted(
      column(filtered.rowFilterColumn),
      column(ScanColumns.RowIndex),
      filtered.rowProbes
    )
    (relation.copy(scan = filtered, output = output), Not(deleted))
  }

  private object ScanAwaitingValues {
    def unapply(plan: LogicalPlan): Option[DataSourceV2ScanRelation] = plan match {
      case relation: DataSourceV2ScanRelation if relation.scan.isInstanceOf[TableScan] =>
        Some(relation)
      case _ => None
    }
  }

  private object ScanWithDeletionVectors {
    def unapply(plan: LogicalPlan): Option[(DataSourceV2ScanRelation, ScanOfLiveRows)] =
      plan match {
        case relation: DataSourceV2ScanRelation =>
          relation.scan match {
            case scan: ScanOfLiveRows if scan.needsDeletionVectorFilter => Some((relation, scan))
            case _ => None
          }
        case _ => None
      }
  }
}
