package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumns
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table
import org.apache.spark.sql.{SparkSession, classic}

import io.deltaic.protocol.DeltaicThrowable
import io.deltaic.spark.UnsupportedOperation
import io.deltaic.spark.catalog.{AutomaticWidening, DeltaicTable, MergeTarget}
import io.deltaic.spark.write.{ComputesColumns, IdentityColumn}

/**
 * Makes the assignments of UPDATE and MERGE those that Spark goes on with: of the types of the columns
 * (see [[AssignedValues]]), one for each column. A generated column that is not set gets its value of the
 * row as it will be, when a column that it is computed from is set.
 *
 * {{{
 *   UpdateTable [a = '1'], pending(c)     =>     UpdateTable [a = 1, b = b, g = f(1)], c
 * }}}
 */
private[spark] final case class ComputeChangedColumns(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case update @ UpdateTable(table, assignments, Some(PendingColumns(condition)))
        if ComputeChangedColumns.isReady(update) =>
      val bare = update.copy(condition = condition)
      val done = changeOf(table, "UPDATE", evolves = false).fold[LogicalPlan](bare) { change =>
        change.completed(
          bare.copy(
            assignments = change.updating(assignments),
            condition = condition.map(RowMetadata.marked(table))
          )
        )
      }
      done.copyTagsFrom(update)
      done
    case merge @ MergeIntoTable(_, _, PendingColumns(Some(condition)), _, _, _, _)
        if ComputeChangedColumns.isReady(merge) =>
      val bare = merge.copy(mergeCondition = condition)
      val done = changeOf(merge.targetTable, "MERGE", merge.withSchemaEvolution)
        .fold[LogicalPlan](bare)(change => change.completed(described(fitted(bare, change))))
      done.copyTagsFrom(merge)
      done
  }

  private def fitted(merge: MergeIntoTable, change: ChangedColumns): MergeIntoTable = {
    val marked = RowMetadata.marked(merge.targetTable) _
    def changing(action: MergeAction): MergeAction = action match {
      case UpdateAction(condition, assignments, fromStar) =>
        UpdateAction(condition.map(marked), change.updating(assignments), fromStar)
      case DeleteAction(condition) => DeleteAction(condition.map(marked))
      case other => other
    }
    val lanes = merge.notMatchedActions.length
    merge.copy(
      mergeCondition = marked(merge.mergeCondition),
      matchedActions = merge.matchedActions.map(changing),
      notMatchedActions = merge.notMatchedActions.zipWithIndex.map {
        case (insert: InsertAction, lane) =>
          insert.copy(assignments = change.inserting(insert.assignments, lane, lanes))
        case (other, _) => other
      },
      notMatchedBySourceActions = merge.notMatchedBySourceActions.map(changing)
    )
  }

  private def described(merge: MergeIntoTable): MergeIntoTable =
    DescribeMerge(spark.asInstanceOf[classic.SparkSession], merge)

  private def changeOf(
      table: LogicalPlan,
      operation: String,
      evolves: Boolean
  ): Option[ChangedColumns] =
    EliminateSubqueryAliases(table) match {
      case relation @ ExtractV2Table(own: ComputesColumns) =>
        val session = spark.asInstanceOf[classic.SparkSession]
        val values = new ColumnValues(session, relation.schema, own.generatedColumns)
        val exactly = evolves && refusesCuts(own)
        val stated =
          new StatedAssignments(operation, own.location.toString, table, evolves, exactly)
        Some(new ChangedColumns(stated, relation.output, values, own))
      case _ => None
    }

  private def refusesCuts(table: ComputesColumns): Boolean = table match {
    case own: DeltaicTable => AutomaticWidening.refusesCuts(own)
    case target: MergeTarget => AutomaticWidening.refusesCuts(target.table)
    case _ => false
  }
}

private[spark] object ComputeChangedColumns {

  /** Whether all is resolved but what a mark keeps from being so. */
  def isReady(update: UpdateTable): Boolean =
    update.childrenResolved && update.assignments.forall(_.resolved) &&
    update.condition.forall(isResolved)

  def isReady(merge: MergeIntoTable): Boolean =
    merge.childrenResolved && isResolved(merge.mergeCondition) &&
    (merge.matchedActions ++ merge.notMatchedActions ++ merge.notMatchedBySourceActions)
      .forall(_.resolved)

  private def isResolved(condition: Expression): Boolean = condition match {
    case pending: PendingColumns => pending.condition.forall(_.resolved)
    case other => other.resolved
  }
}

/**
 * The columns of a table that a statement changes, and what it assigns to them.
 *
 * @param columns of the table, as the statement sees them
 */
private final class ChangedColumns(
    stated: StatedAssignments,
    columns: Seq[Attribute],
    values: ColumnValues,
    target: ComputesColumns
) {
  private val table = target.location.toString
  private val identity = target.identityColumns
  private val generated = columns.filter(c => values.isGenerated(c.name))

  /**
   * The statement with an assignment to each column. Of rows that are there, generated columns are computed
   * from what all others are to be, which is known when these are aligned; then they are, too.
   */
  def completed(command: LogicalPlan): LogicalPlan = (command, stated.aligned(command)) match {
    case (before: UpdateTable, after: UpdateTable) =>
      val set = withComputed(before.assignments, after.assignments)
      if (set == after.assignments) after else stated.aligned(after.copy(assignments = set))
    case (before: MergeIntoTable, after: MergeIntoTable) =>
      val whole = after.copy(
        matchedActions = before.matchedActions.zip(after.matchedActions).map(completedAction),
        notMatchedBySourceActions =
          before.notMatchedBySourceActions.zip(after.notMatchedBySourceActions).map(completedAction)
      )
      if (whole == after) after else stated.aligned(whole)
    case (_, after) => after
  }

  private def completedAction(actions: (MergeAction, MergeAction)): MergeAction = actions match {
    case (before: UpdateAction, after: UpdateAction) =>
      after.copy(assignments = withComputed(before.assignments, after.assignments))
    case (_, after) => after
  }

  /** The assignments to all columns, with values for generated ones that the statement itself does not set. */
  private def withComputed(
      assigned: Seq[Assignment],
      complete: Seq[Assignment]
  ): Seq[Assignment] = {
    def isSet(column: Attribute): Boolean =
      assigned.exists(_.key.exists(_.semanticEquals(column)))
    def newValue(base: String): Expression =
      complete.collectFirst { case set if set.key.semanticEquals(named(base)) => set.value }.get
    val pending = generated.filterNot(isSet).filter { column =>
      values.basesOf(column.name).exists(base => isSet(named(base)))
    }
    complete.map { set =>
      pending.find(_.semanticEquals(set.key))
        .fold(set)(column => set.copy(value = values.of(column.name, newValue)))
    }
  }

  /** What the statement assigns to columns of rows that are there, of the columns' types. */
  def updating(assigned: Seq[Assignment]): Seq[Assignment] = {
    val assignments = stated.fitted(assigned)
    identity.find(c => assignments.exists(_.key.exists(_.semanticEquals(named(c.name)))))
      .foreach(c => throw IdentityColumn.updated(table, c.name))
    assignments
  }

  /**
   * What a row that is inserted gets, of the columns' types, with what the table computes.
   *
   * @param lane which of the statement's `lanes` clauses this is: they number rows in turns
   */
  def inserting(assigned: Seq[Assignment], lane: Int, lanes: Int): Seq[Assignment] = {
    val assignments = stated.fitted(assigned)
    def valueGiven(column: Attribute): Option[Expression] =
      assignments.collectFirst { case set if set.key.semanticEquals(column) => set.value }
    val numbered = identity.flatMap { column =>
      val key = named(column.name)
      if (valueGiven(key).isEmpty) {
        // Nothing that copies expressions sees those of a MERGE, nor would it take one that differs each time.
        val value = column.value(table).copy(lane = lane, lanes = lanes, once = false)
        Some(Assignment(key, value))
      } else if (column.allowExplicitInsert) None
      else throw IdentityColumn.explicitInsert(table, column.name)
    }
    def valueOf(base: String): Expression =
      if (numbered.exists(_.key.semanticEquals(named(base)))) throw generatedFromIdentity(base)
      else
        valueGiven(named(base)).map(stated.shaped(named(base), _))
          .getOrElse(ResolveDefaultColumns.getDefaultValueExprOrNullLit(named(base)))
    val computed = generated.filter(valueGiven(_).isEmpty)
      .map(column => Assignment(column, values.of(column.name, valueOf)))
    assignments ++ numbered ++ computed
  }

  private def generatedFromIdentity(column: String): DeltaicThrowable = UnsupportedOperation(
    table,
    s"MERGE that inserts rows with columns generated from identity column $column"
  )

  private def named(column: String): Attribute =
    columns.find(_.name.equalsIgnoreCase(column)).get
}
