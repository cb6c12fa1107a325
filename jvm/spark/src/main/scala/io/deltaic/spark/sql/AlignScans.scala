package io.deltaic.spark.sql

import scala.annotation.tailrec

import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.expressions.{Expression, PredicateHelper}
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  Filter,
  LogicalPlan,
  Project,
  Subquery
}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation

import io.deltaic.spark.scan.{ComparedFilters, TableScan}

/**
 * Gives scans in scalar subqueries the same columns where they read the same rows, so that Spark's `MergeSubplans`
 * makes one subquery of several.
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
 * `MergeSubplans` looks for equal relations. Those of Spark's file sources are, whatever columns a query wants of
 * them; the columns of a connector's scan have been pruned by then. Only aggregates that it merges are aligned:
 * over all rows, with equal conditions, and with buffers that suit a hash aggregate.
 *
 * The rule sees a query whose subqueries have been optimized, each by itself, and have scans. It does not see scans of
 * aggregates in FROM: between the rule that makes them and `MergeSubplans`, Spark asks no extension.
 */
private[spark] object AlignScans extends Rule[LogicalPlan] with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case _: Subquery => plan
    case _ =>
      val merged = plan
        .collectWithSubqueries { case AggregateOfScan(rows, _, scan) => rows -> scan }
        .groupMap { case (rows, _) => rows } { case (_, scan) => scan }
        .filter { case (_, scans) => scans.distinctBy(_.readSchema()).sizeIs > 1 }
      if (merged.isEmpty) plan
      else
        plan.transformWithSubqueries {
          case aggregate @ AggregateOfScan(rows, relation, scan) if merged.contains(rows) =>
            val aligned = withColumns(relation, scan.withColumnsOf(merged(rows)))
            aggregate.transformDown { case found if found eq relation => aligned }
        }
  }

  private def withColumns(
      relation: DataSourceV2ScanRelation,
      scan: TableScan
  ): DataSourceV2ScanRelation = {
    val known = (relation.relation.output ++ relation.output).map(a => a.name -> a).toMap
    relation.copy(scan = scan, output = scan.readSchema().fieldNames.map(known).toSeq)
  }

  /** An aggregate of all rows of a scan for which conditions are true; equal rows are equal objects. */
  private object AggregateOfScan {
    def unapply(plan: LogicalPlan): Option[(Any, DataSourceV2ScanRelation, TableScan)] =
      plan match {
        case Aggregate(Nil, results, child, _) if suitHashAggregate(results) =>
          scanBelow(child, Nil)
        case _ => None
      }

    private def suitHashAggregate(results: Seq[Expression]): Boolean = {
      val functions = results.flatMap(_.collect { case aggregate: AggregateExpression =>
        aggregate
      })
      Aggregate.supportsHashAggregate(
        functions.flatMap(_.aggregateFunction.aggBufferAttributes),
        Nil
      )
    }

    @tailrec
    private def scanBelow(
        plan: LogicalPlan,
        conditions: List[ComparedFilters]
    ): Option[(Any, DataSourceV2ScanRelation, TableScan)] = plan match {
      case Filter(condition, child) =>
        scanBelow(child, new ComparedFilters(splitConjunctivePredicates(condition)) :: conditions)
      case Project(_, child) => scanBelow(child, conditions)
      case relation @ WholeColumns(scan) if !scan.isChanged =>
        Some(((relation.relation.canonicalized, scan.rows, conditions), relation, scan))
      case _ => None
    }
  }

  /** A scan whose columns have all their fields: of those, each name stands for one column. */
  private object WholeColumns {
    def unapply(relation: DataSourceV2ScanRelation): Option[TableScan] = relation.scan match {
      case scan: TableScan =>
        val whole = relation.relation.output.map(a => a.name -> a.dataType).toMap
        Option.when(relation.output.forall(a => whole.get(a.name).contains(a.dataType)))(scan)
      case _ => None
    }
  }
}
