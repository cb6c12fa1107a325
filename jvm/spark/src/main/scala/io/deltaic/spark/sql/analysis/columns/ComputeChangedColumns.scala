package io.deltaic.spark.sql.analysis.columns

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumns
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table
import org.apache.spark.sql.{SparkSession, classic}

import io.deltaic.protocol.DeltaicThrowable
import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.catalog.target.{AutomaticWidening, MergeTarget}
import io.deltaic.spark.schema.IdentityColumn
import io.deltaic.spark.sql.analysis.merge.DescribeMerge
import io.deltaic.spark.sql.analysis.{PendingColumns, RowMetadata}
import io.deltaic.spark.util.UnsupportedOperation
import io.deltaic.spark.write.ComputesColumns

/**
 * Completes the assignments of UPDATE and MERGE for Spark: one for each column, with values of the columns' types
 * (see [[AssignedValues]]). A generated column that is not set is computed from the new values of the
 * row, if a column that it references is set.
 *
 * {{{
 *   UpdateTable [a = '1'], pending(c)     =>     UpdateTable [a = 1, b = b, g = f(1)], c
 * }}}
 */
private[spark] final case class ComputeChangedColumns(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case update @ UpdateTable(table, assignments, Some(PendingColumns(condition)))
        if PendingColumns.isReady(update) =>
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
        if PendingColumns.isReady(merge) =>
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
        val userSet =
          new UserAssignments(operation, own.location.toString, table, evolves, exactly)
        Some(new ChangedColumns(userSet, relation.output, values, own))
      case _ => None
    }

  private def refusesCuts(table: ComputesColumns): Boolean = table match {
    case own: DeltaicTable => AutomaticWidening.refusesCuts(own)
    case target: MergeTarget => AutomaticWidening.refusesCuts(target.table)
    case _ => false
  }
}

/**
 * The columns of a table that a statement changes, and the values that it assigns to them.
 *
 * @param columns of the table, as the statement sees them
 */
private final class ChangedColumns(
    userSet: UserAssignments,
    columns: Seq[Attribute],
    values: ColumnValues,
    target: ComputesColumns
) {
  private val table = target.location.toString
  private val identity = target.identityColumns
  private val generated = columns.filter(c => values.isGenerated(c.name))

  /**
   * The statement with an assignment to each column. Generated columns of existing rows are computed
   * from the new values of all others, after these have been aligned; then they are aligned, too.
   */
  def completed(command: LogicalPlan): LogicalPlan = (command, userSet.aligned(command)) match {
    case (before: UpdateTable, after: UpdateTable) =>
      val set = withComputed(before.assignments, after.assignments)
      if (set == after.assignments) after else userSet.aligned(after.copy(assignments = set))
    case (before: MergeIntoTable, after: MergeIntoTable) =>
      val whole = after.copy(
        matchedActions = before.matchedActions.zip(after.matchedActions).map(completedAction),
        notMatchedBySourceActions =
          before.notMatchedBySourceActions.zip(after.notMatchedBySourceActions).map(completedAction)
      )
      if (whole == after) after else userSet.aligned(whole)
    case (_, after) => after
  }

  private def completedAction(actions: (MergeAction, MergeAction)): MergeAction = actions match {
    case (before: UpdateAction, after: UpdateAction) =>
      after.copy(assignments = withComputed(before.assignments, after.assignments))
    case (_, after) => after
  }

  /** The assignments to all columns, with computed values of generated columns that the statement does not set. */
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

  /** The assignments to existing rows, cast to the columns' types. */
  def updating(assigned: Seq[Assignment]): Seq[Assignment] = {
    val assignments = userSet.fitted(assigned)
    identity.find(c => assignments.exists(_.key.exists(_.semanticEquals(named(c.name)))))
      .foreach(c => throw IdentityColumn.updated(table, c.name))
    assignments
  }

  /**
   * The assignments of an insert, cast to the columns' types, with generated and identity columns.
   *
   * @param lane the index of this clause among the `lanes` of the statement, for identity values
   */
  def inserting(assigned: Seq[Assignment], lane: Int, lanes: Int): Seq[Assignment] = {
    val assignments = userSet.fitted(assigned)
    def assignedValue(column: Attribute): Option[Expression] =
      assignments.collectFirst { case set if set.key.semanticEquals(column) => set.value }
    val identityValues = identity.flatMap { column =>
      val key = named(column.name)
      if (assignedValue(key).isEmpty) {
        // No rule copies the expressions of a MERGE, and Spark does not accept nondeterministic ones there.
        val value = column.value(table).copy(lane = lane, lanes = lanes, once = false)
        Some(Assignment(key, value))
      } else if (column.allowExplicitInsert) None
      else throw IdentityColumn.explicitInsert(table, column.name)
    }
    def valueOf(base: String): Expression =
      if (identityValues.exists(_.key.semanticEquals(named(base))))
        throw generatedFromIdentity(base)
      else
        assignedValue(named(base)).map(userSet.shaped(named(base), _))
          .getOrElse(ResolveDefaultColumns.getDefaultValueExprOrNullLit(named(base)))
    val computed = generated.filter(assignedValue(_).isEmpty)
      .map(column => Assignment(column, values.of(column.name, valueOf)))
    assignments ++ identityValues ++ computed
  }

  private def generatedFromIdentity(column: String): DeltaicThrowable = UnsupportedOperation(
    table,
    s"MERGE that inserts rows with columns generated from identity column $column"
  )

  private def named(column: String): Attribute =
    columns.find(_.name.equalsIgnoreCase(column)).get
}
