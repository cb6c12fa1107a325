package io.deltaic.spark.sql.optimizer

import scala.annotation.tailrec

import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.expressions.{Expression, PredicateHelper, ScalarSubquery}
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  Filter,
  LogicalPlan,
  Project,
  Subquery
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.trees.TreePattern.SCALAR_SUBQUERY
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation

import io.deltaic.spark.scan.{ComparedFilters, TableScan}

/**
 * Gives scans in scalar subqueries the same columns if they read the same rows, so that Spark's `MergeSubplans`
 * can merge the subqueries.
 *
 * {{{
 *   Aggregate [avg(a)]                Aggregate [avg(a)]
 *   +- Filter k < 9                   +- Filter k < 9
 *      +- ScanRelation t [k, a]          +- ScanRelation t [k, a, b]
 *                               =>
 *   Aggregate [max(b)]                Aggregate [max(b)]
 *   +- Filter k < 9                   +- Filter k < 9
 *      +- ScanRelation t [k, b]          +- ScanRelation t [k, a, b]
 * }}}
 *
 * `MergeSubplans` looks for equal relations. Relations of Spark's file sources are equal regardless of the columns that
 * a query reads; those of a connector's scan have already been pruned. Only what Spark merges is aligned: uncorrelated
 * scalar subqueries that aggregate all rows, with equal conditions and the same kind of aggregation.
 *
 * The rule sees a query after its subqueries have been optimized separately, and have scans. It does not see scans of
 * aggregates in FROM: Spark runs no extension between the rule that creates them and `MergeSubplans`. It does not align
 * subqueries with different conditions, which Spark merges for file sources in some cases.
 */
private[spark] object AlignScans extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case _: Subquery => plan
    case _ if !conf.subqueryReuseEnabled || !plan.containsPattern(SCALAR_SUBQUERY) => plan
    case _ =>
      val alignable = scansBySelection(plan)
      if (alignable.isEmpty) plan else aligned(plan, alignable)
  }

  /** Scans in subqueries that would be merged if they had the same columns. */
  private def scansBySelection(plan: LogicalPlan): Map[Any, Seq[TableScan]] =
    mergeable(plan)
      .flatMap(AggregateOfScan.unapply)
      .groupMap { case (selection, _, _) => selection } { case (_, _, scan) => scan }
      .filter { case (_, scans) => scans.distinctBy(_.readSchema()).sizeIs > 1 }

  /** The subqueries of a plan that Spark may merge, at any depth. */
  private def mergeable(plan: LogicalPlan): Seq[LogicalPlan] =
    plan.collect { case node => node.expressions }.flatten.flatMap(_.collect {
      case subquery: ScalarSubquery if !subquery.isCorrelated && subquery.deterministic =>
        subquery.plan +: mergeable(subquery.plan)
    }.flatten)

  private def aligned(plan: LogicalPlan, alignable: Map[Any, Seq[TableScan]]): LogicalPlan =
    plan.transformAllExpressionsWithPruning(_.containsPattern(SCALAR_SUBQUERY)) {
      case subquery: ScalarSubquery if !subquery.isCorrelated && subquery.deterministic =>
        val inner = aligned(subquery.plan, alignable)
        inner match {
          case AggregateOfScan(selection, relation, scan) if alignable.contains(selection) =>
            val wider = withColumns(relation, scan.withColumnsOf(alignable(selection)))
            subquery.copy(plan = inner.transformDown { case found if found eq relation => wider })
          case _ => if (inner eq subquery.plan) subquery else subquery.copy(plan = inner)
        }
    }

  private def withColumns(
      relation: DataSourceV2ScanRelation,
      scan: TableScan
  ): DataSourceV2ScanRelation = {
    val byName = (relation.relation.output ++ relation.output).map(a => a.name -> a).toMap
    // The list of pushed filters is for display only, and depends on the columns that were read.
    relation.copy(
      scan = scan,
      output = scan.readSchema().fieldNames.map(byName).toSeq,
      pushedFilters = Nil
    )
  }

  /** An aggregate of all rows of a scan for which conditions are true; equal selections are equal objects. */
  private object AggregateOfScan {
    def unapply(plan: LogicalPlan): Option[(Any, DataSourceV2ScanRelation, TableScan)] =
      plan match {
        case Aggregate(Nil, results, child, _) =>
          scanBelow(child, Nil).map { case (selection, relation, scan) =>
            ((selection, kindOf(results)), relation, scan)
          }
        case _ => None
      }

    /** Whether Spark supports a hash aggregate and, if not, an object hash aggregate. */
    private def kindOf(results: Seq[Expression]): (Boolean, Boolean) = {
      val functions = results.flatMap(_.collect { case aggregate: AggregateExpression =>
        aggregate
      })
      val buffers = functions.flatMap(_.aggregateFunction.aggBufferAttributes)
      val isHash = Aggregate.supportsHashAggregate(buffers, Nil)
      (isHash, !isHash && Aggregate.supportsObjectHashAggregate(functions, Nil))
    }

    @tailrec
    private def scanBelow(
        plan: LogicalPlan,
        conditions: List[ComparedFilters]
    ): Option[(Any, DataSourceV2ScanRelation, TableScan)] = plan match {
      case Filter(condition, child) =>
        scanBelow(child, new ComparedFilters(splitConjunctivePredicates(condition)) :: conditions)
      case Project(_, child) => scanBelow(child, conditions)
      // A statement that changes a table records what each of its scans reads.
      case relation @ WholeColumns(scan) if !scan.isChanged =>
        Some(((relation.relation.canonicalized, scan.selection, conditions), relation, scan))
      case _ => None
    }
  }

  /** A scan whose columns are not pruned to some of their fields, so that a name identifies a column. */
  private object WholeColumns {
    def unapply(relation: DataSourceV2ScanRelation): Option[TableScan] = relation.scan match {
      case scan: TableScan =>
        val whole = relation.relation.output.map(a => a.name -> a.dataType).toMap
        Option.when(relation.output.forall(a => whole.get(a.name).contains(a.dataType)))(scan)
      case _ => None
    }
  }
}
