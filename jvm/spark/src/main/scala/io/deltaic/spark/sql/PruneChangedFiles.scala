package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{Inner, LeftAnti, RightOuter}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.catalog.MergeTarget
import io.deltaic.spark.rowlevel.RowLevelChange

/**
 * Lets a change look for its rows only between the least and the greatest key of what it is matched with:
 * files that lie elsewhere are left out when the statement runs, and other rows are not joined. Spark
 * does so by itself only where it broadcasts the source, which it cannot if rows without a match are to
 * be inserted.
 *
 * {{{
 *   Join RightOuter t.k = s.k        =>    Join RightOuter t.k = s.k
 *   :- t                                   :- Filter [t.k >= (min of s.k) AND t.k <= (max of s.k)]
 *   +- s                                   :  +- t
 *                                          +- s
 * }}}
 *
 * The source is read once more for that. So it has to be small, and to give the same rows each time; see
 * [[KeySource]].
 *
 * Spark's own filter for the files of a change is taken off: it would run the statement's whole join
 * first, for every column that has statistics, and then use none of it unless that is one column.
 */
private[spark] final case class PruneChangedFiles(spark: SparkSession)
    extends Rule[LogicalPlan]
    with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case WithCTE(command: Command, definitions) => WithCTE(pruned(command), definitions)
    case command => pruned(command)
  }

  private def pruned(command: LogicalPlan): LogicalPlan = command match {
    case write @ WriteDelta(ExtractV2Table(table), _, query, _, _, _, _) if !write.analyzed =>
      write.operation match {
        case change: RowLevelChange =>
          val bounded = if (isWorthwhile(change)) withBounds(query, table) else query
          write.copy(query = bounded, groupFilterCondition = None)
        case _ => write
      }
    case merge @ InsertOnlyMerge(ExtractV2Table(table: MergeTarget), query, _, _)
        if !merge.analyzed =>
      merge.copy(query = withBounds(query, table))
    case other => other
  }

  /** One file is read in any case. */
  private def isWorthwhile(change: RowLevelChange): Boolean =
    change.snapshot.isDistributed || change.snapshot.filesInMemory.size > 1

  /** @param table the target, which is this very object */
  private def withBounds(query: LogicalPlan, table: Table): LogicalPlan = {
    def target(plan: LogicalPlan): Option[DataSourceV2Relation] =
      plan.collectFirst { case r: DataSourceV2Relation if r.table eq table => r }
    query.resolveOperatorsUp {
      case join @ Join(left, right, Inner | RightOuter, Some(condition), _) =>
        target(left).fold[LogicalPlan](join) { relation =>
          join.copy(left = bounded(left, relation, keysIn(condition, relation, right)))
        }
      case join @ Join(left, right, LeftAnti, Some(condition), _) =>
        target(right).fold[LogicalPlan](join) { relation =>
          join.copy(right = bounded(right, relation, keysIn(condition, relation, left)))
        }
      case filter @ Filter(condition, child: DataSourceV2Relation) if child.table eq table =>
        filter.copy(child = bounded(child, child, keysIn(condition)))
    }
  }

  private def bounded(
      plan: LogicalPlan,
      relation: DataSourceV2Relation,
      bounds: Seq[Expression]
  ): LogicalPlan =
    if (bounds.isEmpty) plan
    else plan.resolveOperatorsUp { case r if r eq relation => Filter(bounds.reduce(And(_, _)), r) }

  /** Bounds by the columns that a join equates. */
  private def keysIn(
      condition: Expression,
      relation: DataSourceV2Relation,
      source: LogicalPlan
  ): Seq[Expression] = {
    def isOf(plan: LogicalPlan, key: Expression): Boolean =
      key.references.nonEmpty && key.references.subsetOf(plan.outputSet)
    val pairs = splitConjunctivePredicates(condition).collect {
      case EqualTo(own, other) if isOf(relation, own) && isOf(source, other) => own -> other
      case EqualTo(other, own) if isOf(relation, own) && isOf(source, other) => own -> other
    }
    if (pairs.isEmpty) Nil else boundsOf(pairs, source)
  }

  /** Bounds by the subqueries that a condition asks to contain a column. */
  private def keysIn(condition: Expression): Seq[Expression] =
    splitConjunctivePredicates(condition).flatMap {
      case InSubquery(Seq(own), ListQuery(plan, Nil, _, _, Nil, _)) if own.references.nonEmpty =>
        boundsOf(Seq(own -> plan.output.head), plan)
      case _ => Nil
    }

  private def boundsOf(
      pairs: Seq[(Expression, Expression)],
      source: LogicalPlan
  ): Seq[Expression] =
    KeySource.of(spark, source).fold(Seq.empty[Expression]) { keys =>
      pairs.filter { case (own, other) => own.deterministic && keys.canBound(other) }
        .flatMap { case (own, other) =>
          Seq(
            GreaterThanOrEqual(own, keys.least(other)),
            LessThanOrEqual(own, keys.greatest(other))
          )
        }
    }
}
