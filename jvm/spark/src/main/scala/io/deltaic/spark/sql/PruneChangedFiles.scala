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
 * Lets a change look only for rows that have a key of what it is matched with: other rows are dropped
 * before they are shuffled to be joined, and files that hold none are left out when the statement runs.
 * Spark does so by itself only where it broadcasts a source that is filtered, which it cannot if rows
 * without a match are to be inserted.
 *
 * {{{
 *   Join RightOuter t.k = s.k        =>    Join RightOuter t.k = s.k
 *   :- t                                   :- Filter [t.k IN (keys of s)]
 *   +- s                                   :  +- t
 *                                          +- s
 * }}}
 *
 * The keys are broadcast: Spark makes a semi join of the filter, and hands them to the scan of the table.
 * Where they are too many for that, the filter is
 * `t.k >= (least key of s) AND t.k <= (greatest key of s)`.
 *
 * The source is read once more for that. So it has to be small, and to give the same rows each time; see
 * [[KeySource]]. What the condition asks of the table alone, or of the source alone, comes before the keys:
 * it may be what keeps them from failing, as in `t.kind = 'number' AND CAST(t.text AS INT) = s.k`.
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
        case change: RowLevelChange if isWorthwhile(change) =>
          write.copy(query = withKeys(query, table))
        case _ => write
      }
    case merge @ InsertOnlyMerge(ExtractV2Table(table: MergeTarget), query, _, _)
        if !merge.analyzed =>
      merge.copy(query = withKeys(query, table))
    case other => other
  }

  /** One file is read in any case, but unless it is small, most of its rows need not be shuffled. */
  private def isWorthwhile(change: RowLevelChange): Boolean =
    change.snapshot.size.forall(size => size.numFiles > 1 || size.sizeBytes >= LargeFileBytes)

  private val LargeFileBytes = 16L << 20

  /** @param table the target, which is this very object */
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
        val (asking, ofRows) =
          splitConjunctivePredicates(condition).partition(SubqueryExpression.hasSubquery)
        filter.copy(condition = (ofRows ++ asking.flatMap(conditionsFor)).reduce(And(_, _)))
    }
  }

  /** Where a condition that comes first cannot be asked beforehand, keys that could fail are not, either. */
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
      KeySource.of(spark, source, ofSource).fold(plan) { keys =>
        val conditions = ofTable ++ keys.conditions(pairs)
        plan.resolveOperatorsUp {
          case r if r eq relation => Filter(conditions.reduce(And(_, _)), r)
        }
      }
  }

  /** A condition, with more beside it if it asks a subquery to contain columns. */
  private def conditionsFor(condition: Expression): Seq[Expression] = condition match {
    case InSubquery(values, rows @ ListQuery(plan, Nil, _, _, Nil, None))
        if values.forall(_.references.nonEmpty) =>
      KeySource.of(spark, plan).fold(Seq(condition))(_.conditions(values, rows))
    case _ => Seq(condition)
  }
}
