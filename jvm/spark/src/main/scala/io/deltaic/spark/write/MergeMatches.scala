package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.deltaic.{CountedRows, StoredRows}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

import io.deltaic.spark.scan.TableScan

/**
 * The rows of the target that a MERGE has anything to do with: those that match a row of its source. So
 * it can be asked of rows that another commit has added.
 *
 * @param target the side of the join that reads the table
 */
private[spark] final case class MergeMatches(
    target: LogicalPlan,
    source: LogicalPlan,
    condition: Expression
) {

  /**
   * {{{
   *   MergeRows                              Join LeftSemi
   *   +- Join RightOuter                     :- Filter
   *      :- Filter                      =>   :  +- Project
   *      :  +- scan of the table             :     +- rows
   *      +- source                           +- source
   * }}}
   *
   * @param scan the scan of the table
   * @param rows other rows of the table
   * @return none if these cannot take the place of the scanned ones
   */
  def among(scan: TableScan, rows: LogicalPlan): Option[LogicalPlan] = {
    val columns = rows.output.map(column => column.name -> column).toMap
    val scanned = target.collect {
      case relation: DataSourceV2ScanRelation if relation.scan eq scan => relation
    }
    Option.when(scanned.size == 1 && scanned.head.output.forall(fits(_, columns))) {
      val taken = target.transformUp {
        case relation: DataSourceV2ScanRelation if relation.scan eq scan =>
          Project(relation.output.map(stands(_, columns)), rows)
      }
      Join(taken, source, LeftSemi, Some(condition), JoinHint.NONE)
    }
  }

  /** Of a struct, the scan may have only some fields. */
  private def fits(scanned: Attribute, columns: Map[String, Attribute]): Boolean =
    columns.get(scanned.name).forall(c => DataTypeUtils.sameType(c.dataType, scanned.dataType))

  /** Row ids and the like tell where a row is: no condition asks for that. */
  private def stands(scanned: Attribute, columns: Map[String, Attribute]): NamedExpression = {
    val value = columns.getOrElse(scanned.name, Literal(null, scanned.dataType))
    Alias(value, scanned.name)(exprId = scanned.exprId)
  }
}

private[spark] object MergeMatches {

  /**
   * None if the query is no MERGE, if it changes rows that match nothing, or if its source may be another
   * one when it is read again.
   */
  def in(query: LogicalPlan): Option[MergeMatches] =
    query.collectFirst {
      case merge: MergeRows if merge.notMatchedBySourceInstructions.isEmpty => merge.child
    }.flatMap(joinIn).collect {
      case Join(target, counted, _, Some(condition), _) =>
        (target, CountedRows.uncounted(counted), condition)
    }.collect {
      case (target, source, condition) if isStable(source) && condition.deterministic =>
        MergeMatches(withoutKeys(withoutPruning(target)), withoutPruning(source), condition)
    }

  /**
   * Without the filter by the keys of the source, which asks less than the condition. That has no subqueries
   * of its own, of which the bounds of keys are made, and the semi join with the keys.
   */
  private def withoutKeys(target: LogicalPlan): LogicalPlan =
    target.transform { case Join(rows, _, LeftSemi, _, _) => rows }.transformAllExpressions {
      case bound: BinaryComparison if SubqueryExpression.hasSubquery(bound) => Literal.TrueLiteral
    }

  private def joinIn(plan: LogicalPlan): Option[Join] = plan match {
    case join: Join => Some(join)
    case Project(_, child) => joinIn(child)
    case _ => None
  }

  private def withoutPruning(plan: LogicalPlan): LogicalPlan =
    plan.transformAllExpressionsWithSubqueries { case _: DynamicPruning => Literal.TrueLiteral }

  private def isStable(source: LogicalPlan): Boolean =
    source.deterministic && !source.exists(_.expressions.exists(SubqueryExpression.hasSubquery)) &&
    source.collectLeaves().forall {
      case _: LocalRelation | _: Range | _: OneRowRelation | StoredRows(_) => true
      case LogicalRelation(_: HadoopFsRelation, _, _, _, _) => true
      case relation: DataSourceV2ScanRelation => relation.scan.isInstanceOf[TableScan]
      case _ => false
    }
}
