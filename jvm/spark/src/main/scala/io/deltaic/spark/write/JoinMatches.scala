package io.deltaic.spark.write

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.{Inner, LeftAnti, LeftSemi, RightOuter}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.deltaic.{CountedRows, Repeats, SeenKey, StoredRows}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.types.StructType

import io.deltaic.spark.scan.TableScan

/**
 * The rows of the target that a MERGE has anything to do with: those that match a row of its source. Or
 * that a DELETE or UPDATE has, which asks a subquery for its rows. So it can be asked of rows that another
 * commit has added.
 *
 * @param target the side of the join that reads the table
 * @param source none if it may be another one when it is read again
 * @param keys what each of its rows has had in columns that the target has to have, once it has run; none
 *   where the join need not ask for every row of the source
 */
private[spark] final case class JoinMatches(
    target: LogicalPlan,
    source: Option[LogicalPlan],
    condition: Expression,
    keys: Seq[SeenKey]
) {

  def reads(scan: TableScan): Boolean = target.exists {
    case relation: DataSourceV2ScanRelation => relation.scan eq scan
    case _ => false
  }

  /** Whether a row of the target that has matched does so when it is asked again. */
  def repeats: Boolean = {
    val asked = target.collect { case Filter(filter, _) => filter } :+ condition
    val deciding = AttributeSet(asked.flatMap(_.references))
    !target.exists {
      case Project(columns, _) =>
        columns.exists(c => deciding.contains(c.toAttribute) && !Repeats.expression(c))
      case node => !Repeats.node(node)
    }
  }

  /** What holds of all rows that match, as far as columns of the target alone tell. */
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
   * @return none if these cannot take the place of the scanned ones
   */
  def among(scan: TableScan, rows: LogicalPlan): Option[LogicalPlan] = {
    val columns = rows.output.map(column => column.name -> column).toMap
    val scanned = target.collect {
      case relation: DataSourceV2ScanRelation if relation.scan eq scan => relation
    }
    source.filter(_ => scanned.size == 1 && scanned.head.output.forall(fits(_, columns))).map {
      repeated =>
        val taken = target.transformUp {
          case relation: DataSourceV2ScanRelation if relation.scan eq scan =>
            Project(relation.output.map(stands(_, columns)), rows)
        }
        Join(taken, repeated, LeftSemi, Some(condition), JoinHint.NONE)
    }
  }

  /** Of a struct, the scan may have only some fields. A condition may ask `_metadata` where a row is. */
  private def fits(scanned: Attribute, columns: Map[String, Attribute]): Boolean =
    columns.get(scanned.name) match {
      case Some(column) => DataTypeUtils.sameType(column.dataType, scanned.dataType)
      case None => !scanned.dataType.isInstanceOf[StructType]
    }

  /** Row ids and the like tell where a row is, which nothing but the write asks for. */
  private def stands(scanned: Attribute, columns: Map[String, Attribute]): NamedExpression = {
    val value = columns.getOrElse(scanned.name, Literal(null, scanned.dataType))
    Alias(value, scanned.name)(exprId = scanned.exprId)
  }
}

private[spark] object JoinMatches extends PredicateHelper {

  /** None if the statement joins nothing to the table, or if it changes rows that match nothing. */
  def in(command: V2WriteCommand): Option[JoinMatches] = command match {
    case change: WriteDelta => merging(change.query).orElse(choosing(change.query))
    case merge: InsertOnlyMerge =>
      inserting(merge.query, source => isCounted(source) || isFolded(source))
    case append => inserting(append.query, isCounted)
  }

  private def merging(query: LogicalPlan): Option[JoinMatches] =
    query.collectFirst {
      case merge: MergeRows if merge.notMatchedBySourceInstructions.isEmpty => merge.child
    }.flatMap(joinIn).collect {
      case Join(target, source, joinType @ (Inner | RightOuter), Some(condition), _) =>
        of(target, source, condition, asksAll = joinType == RightOuter)
    }

  /** A DELETE or UPDATE of the rows for which a subquery has a row: `IN` and `EXISTS`. */
  private def choosing(query: LogicalPlan): Option[JoinMatches] = joinIn(query).collect {
    case Join(target, source, LeftSemi, Some(condition), _) =>
      of(target, source, condition, asksAll = false)
  }

  /** One that only inserts is an append of what has no match. */
  private def inserting(
      query: LogicalPlan,
      isSource: LogicalPlan => Boolean
  ): Option[JoinMatches] =
    query.collectFirst {
      case Join(source, target, LeftAnti, Some(condition), _) if isSource(source) =>
        of(target, source, condition, asksAll = true)
    }

  private def isCounted(source: LogicalPlan): Boolean = counted(source).isDefined

  /** Rows that are in the plan are counted when it is optimized. */
  private def isFolded(source: LogicalPlan): Boolean = source.isInstanceOf[LocalRelation]

  /** @param asksAll whether no row of the source can be passed over unread, because it is to be inserted */
  private def of(
      target: LogicalPlan,
      source: LogicalPlan,
      condition: Expression,
      asksAll: Boolean
  ): JoinMatches = {
    val rows = withoutPruning(CountedRows.uncounted(source))
    JoinMatches(
      withoutKeys(withoutPruning(target)),
      Option.when(isStable(rows) && Repeats.expression(condition))(rows),
      condition,
      if (asksAll) counted(source).toSeq.flatMap(_.seen) else Nil
    )
  }

  private def counted(source: LogicalPlan): Option[CountedRows] =
    source.collectFirst { case Filter(counted: CountedRows, _) => counted }

  /**
   * Without the filter by the keys of the source, which asks less than the condition: a semi join with them,
   * and bounds, which are subqueries. What the statement asks in the same form goes with them, which leaves
   * more rows, never fewer. What the rows are joined with otherwise stays: an anti join wants all of it.
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
    !source.exists(!Repeats.node(_)) && source.collectLeaves().forall {
      case _: LocalRelation | _: Range | _: OneRowRelation | StoredRows(_) => true
      case LogicalRelation(files: HadoopFsRelation, _, _, _, _) => Repeats.files(files)
      case relation: DataSourceV2ScanRelation => relation.scan.isInstanceOf[TableScan]
      case _ => false
    }
}
