package io.deltaic.spark.sql.analysis.merge

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{Inner, LeftAnti, RightOuter}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.catalog.target.MergeTarget
import io.deltaic.spark.rowlevel.RowLevelChange

/**
 * Restricts a change to target rows with a key of its source: other rows are filtered
 * before the shuffle of the join, and files without such rows are pruned at run time.
 * Spark itself does this only if it broadcasts a filtered source, which is impossible if rows
 * without a match are inserted.
 *
 * {{{
 *   Join RightOuter t.k = s.k        =>    Join RightOuter t.k = s.k
 *   :- t                                   :- Filter [t.k IN (keys of s)]
 *   +- s                                   :  +- t
 *                                          +- s
 * }}}
 *
 * The keys are broadcast: Spark rewrites the filter to a semi join, and pushes the keys to the scan of the table.
 * If they are too many for that, the filter is
 * `t.k >= (smallest key of s) AND t.k <= (largest key of s)`.
 *
 * The source is read a second time for that. So it must be small and repeatable; see
 * [[MergeSourceKeys]]. Conditions on the table alone, or on the source alone, precede the keys:
 * they may prevent a failure of the keys, as in `t.kind = 'number' AND CAST(t.text AS INT) = s.k`.
 */
private[spark] final case class PruneMergeTarget(spark: SparkSession)
    extends Rule[LogicalPlan]
    with PredicateHelper {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case WithCTE(command: Command, definitions) => WithCTE(pruned(command), definitions)
    case command => pruned(command)
  }

  private def pruned(command: LogicalPlan): LogicalPlan = command match {
    case write @ WriteDelta(ExtractV2Table(table), _, query, _, _, _, _) if !write.analyzed =>
      write.operation match {
        case change: RowLevelChange if isWorthwhile(change) =>
          write.copy(query = withKeys(query, table))
        case _ => write
      }
    case merge @ InsertOnlyMerge(ExtractV2Table(table: MergeTarget), query, _, _)
        if !merge.analyzed =>
      merge.copy(query = withKeys(query, table))
    case other => other
  }

  /** A single file is always read, but unless it is small, the filter saves most of the shuffle. */
  private def isWorthwhile(change: RowLevelChange): Boolean =
    change.snapshot.size.forall(size => size.numFiles > 1 || size.sizeBytes >= LargeFileBytes)

  private val LargeFileBytes = 16L << 20

  /** @param table the target, compared by reference */
  private def withKeys(query: LogicalPlan, table: Table): LogicalPlan = {
    def target(plan: LogicalPlan): Option[DataSourceV2Relation] =
      plan.collectFirst { case r: DataSourceV2Relation if r.table eq table => r }
    query.resolveOperatorsUp {
      case join @ Join(left, right, Inner | RightOuter, Some(condition), _) =>
        target(left).fold[LogicalPlan](join) { relation =>
          join.copy(left = filtered(left, relation, condition, right))
        }
      case join @ Join(left, right, LeftAnti, Some(condition), _) =>
        target(right).fold[LogicalPlan](join) { relation =>
          join.copy(right = filtered(right, relation, condition, left))
        }
      case filter @ Filter(condition, child: DataSourceV2Relation) if child.table eq table =>
        val (withSubquery, others) =
          splitConjunctivePredicates(condition).partition(SubqueryExpression.hasSubquery)
        filter.copy(condition = (others ++ withSubquery.flatMap(conditionsFor)).reduce(And(_, _)))
    }
  }

  /** If a preceding condition cannot be evaluated before the join, keys that could fail are left out, too. */
  private def filtered(
      plan: LogicalPlan,
      relation: DataSourceV2Relation,
      condition: Expression,
      source: LogicalPlan
  ): LogicalPlan = {
    val (ofTable, others) = KeyPair.about(relation, condition).partition(KeyPair.isFilter)
    val (ofSource, more) = KeyPair.about(source, condition).partition(KeyPair.isFilter)
    val pairs = KeyPair.equated(condition, relation, source)
      .filter(pair => (others ++ more).isEmpty || pair.isTotal)
    if (pairs.isEmpty) plan
    else
      MergeSourceKeys.of(spark, source, ofSource).fold(plan) { keys =>
        val conditions = ofTable ++ keys.conditions(pairs)
        plan.resolveOperatorsUp {
          case r if r eq relation => Filter(conditions.reduce(And(_, _)), r)
        }
      }
  }

  /** A condition, with derived ones added if it is `columns IN (subquery)`. */
  private def conditionsFor(condition: Expression): Seq[Expression] = condition match {
    case InSubquery(values, rows @ ListQuery(plan, Nil, _, _, Nil, None))
        if values.forall(_.references.nonEmpty) =>
      MergeSourceKeys.of(spark, plan).fold(Seq(condition))(_.conditions(values, rows))
    case _ => Seq(condition)
  }
}
