package io.deltaic.spark.commit.reads

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{Inner, LeftAnti, LeftSemi, RightOuter}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.deltaic.merge.{
  CollectedKey,
  CountedRows,
  DeterminismCheck,
  MaterializedMergeSource
}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types.StructType

import io.deltaic.spark.scan.TableScan

/**
 * The rows of the target that a MERGE depends on: those that match a row of its source. The same for a
 * DELETE or UPDATE with a subquery for its rows. It can be evaluated on rows that another
 * commit has added.
 *
 * @param target the side of the join that reads the table
 * @param source none if it is not repeatable
 * @param keys the values of the source's rows in the join columns, collected once it has run; none if the join
 *   may skip rows of the source
 */
private[spark] final case class MergeReadPredicate(
    target: LogicalPlan,
    source: Option[LogicalPlan],
    condition: Expression,
    keys: Seq[CollectedKey]
) {

  def reads(scan: TableScan): Boolean = target.exists {
    case relation: DataSourceV2ScanRelation => relation.scan eq scan
    case _ => false
  }

  /** Whether a row of the target that has matched matches again on re-evaluation. */
  def isDeterministic: Boolean = {
    val filters = target.collect { case Filter(filter, _) => filter } :+ condition
    val deciding = AttributeSet(filters.flatMap(_.references))
    !target.exists {
      case Project(columns, _) =>
        columns.exists(c => deciding.contains(c.toAttribute) && !DeterminismCheck.expression(c))
      case node => !DeterminismCheck.node(node)
    }
  }

  /** Conditions on columns of the target alone that all matching rows satisfy. */
  def conditions: Seq[Expression] = keys.map(key => key.values.contain(key.column))

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
   * @return none if these cannot replace the scanned rows
   */
  def restrictTo(scan: TableScan, rows: LogicalPlan): Option[LogicalPlan] = {
    val columns = rows.output.map(column => column.name -> column).toMap
    val scanned = target.collect {
      case relation: DataSourceV2ScanRelation if relation.scan eq scan => relation
    }
    source.filter(_ => scanned.size == 1 && scanned.head.output.forall(fits(_, columns))).map {
      repeatable =>
        val replaced = target.transformUp {
          case relation: DataSourceV2ScanRelation if relation.scan eq scan =>
            Project(relation.output.map(valueFor(_, columns)), rows)
        }
        Join(replaced, repeatable, LeftSemi, Some(condition), JoinHint.NONE)
    }
  }

  /** The scan may read only some fields of a struct. A condition may use fields of `_metadata`. */
  private def fits(scanned: Attribute, columns: Map[String, Attribute]): Boolean =
    columns.get(scanned.name) match {
      case Some(column) => DataTypeUtils.sameType(column.dataType, scanned.dataType)
      case None => !scanned.dataType.isInstanceOf[StructType]
    }

  /** Row IDs and other positions are null: only the write uses them. */
  private def valueFor(scanned: Attribute, columns: Map[String, Attribute]): NamedExpression = {
    val value = columns.getOrElse(scanned.name, Literal(null, scanned.dataType))
    Alias(value, scanned.name)(exprId = scanned.exprId)
  }
}

private[spark] object MergeReadPredicate extends PredicateHelper {

  /** None if the statement has no join with the table, or if it changes rows without a match. */
  def in(command: V2WriteCommand): Option[MergeReadPredicate] = command match {
    case change: WriteDelta => merging(change.query).orElse(choosing(change.query))
    case merge: InsertOnlyMerge =>
      inserting(merge.query, source => isCounted(source) || isFolded(source))
    case append => inserting(append.query, isCounted)
  }

  private def merging(query: LogicalPlan): Option[MergeReadPredicate] =
    query.collectFirst {
      case merge: MergeRows if merge.notMatchedBySourceInstructions.isEmpty => merge.child
    }.flatMap(joinIn).collect {
      case Join(target, source, joinType @ (Inner | RightOuter), Some(condition), _) =>
        of(target, source, condition, needsAllRows = joinType == RightOuter)
    }

  /** A DELETE or UPDATE of the rows for which a subquery has a row: `IN` and `EXISTS`. */
  private def choosing(query: LogicalPlan): Option[MergeReadPredicate] = joinIn(query).collect {
    case Join(target, source, LeftSemi, Some(condition), _) =>
      of(target, source, condition, needsAllRows = false)
  }

  /** An insert-only MERGE is an append of the rows without a match. */
  private def inserting(
      query: LogicalPlan,
      isSource: LogicalPlan => Boolean
  ): Option[MergeReadPredicate] =
    query.collectFirst {
      case Join(source, target, LeftAnti, Some(condition), _) if isSource(source) =>
        of(target, source, condition, needsAllRows = true)
    }

  private def isCounted(source: LogicalPlan): Boolean = counted(source).isDefined

  /** Rows of a local relation are counted when the plan is optimized. */
  private def isFolded(source: LogicalPlan): Boolean = source.isInstanceOf[LocalRelation]

  /** @param needsAllRows whether every row of the source is read, since unmatched rows are inserted */
  private def of(
      target: LogicalPlan,
      source: LogicalPlan,
      condition: Expression,
      needsAllRows: Boolean
  ): MergeReadPredicate = {
    val rows = withoutPruning(CountedRows.uncounted(source))
    MergeReadPredicate(
      withoutKeys(withoutPruning(target)),
      Option.when(isStable(rows) && DeterminismCheck.expression(condition))(rows),
      condition,
      if (needsAllRows) counted(source).toSeq.flatMap(_.seen) else Nil
    )
  }

  private def counted(source: LogicalPlan): Option[CountedRows] =
    source.collectFirst { case Filter(counted: CountedRows, _) => counted }

  /**
   * Removes the filter by the keys of the source, which is weaker than the condition: a semi join with the keys,
   * and bounds, which are subqueries. Conditions of the statement in the same form are removed, too, which retains
   * more rows, never fewer. Other joins stay: an anti join needs all rows of its other side.
   */
  private def withoutKeys(target: LogicalPlan): LogicalPlan = target match {
    case Join(rows, _, LeftSemi, _, _) => withoutKeys(rows)
    case join: Join => join.copy(left = withoutKeys(join.left))
    case Filter(condition, rows) =>
      splitConjunctivePredicates(condition).filterNot(SubqueryExpression.hasSubquery)
        .reduceOption(And).fold(withoutKeys(rows))(Filter(_, withoutKeys(rows)))
    case other => other.mapChildren(withoutKeys)
  }

  private def joinIn(plan: LogicalPlan): Option[Join] = plan match {
    case join: Join => Some(join)
    case Project(_, child) => joinIn(child)
    case _ => None
  }

  private def withoutPruning(plan: LogicalPlan): LogicalPlan =
    plan.transformAllExpressionsWithSubqueries { case _: DynamicPruning => Literal.TrueLiteral }

  private def isStable(source: LogicalPlan): Boolean =
    !source.exists(_.expressions.exists(SubqueryExpression.hasSubquery)) &&
    !source.exists(!DeterminismCheck.node(_)) && source.collectLeaves().forall {
      case _: LocalRelation | _: Range | _: OneRowRelation | MaterializedMergeSource(_) => true
      case LogicalRelation(files: HadoopFsRelation, _, _, _, _) => DeterminismCheck.files(files)
      case relation: DataSourceV2ScanRelation => relation.scan.isInstanceOf[TableScan]
      case _ => false
    }
}
