package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumns
import org.apache.spark.sql.deltaic.WriteCommandShims
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table
import org.apache.spark.sql.{SparkSession, classic}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.write.{ComputesColumns, IdentityColumn}

/**
 * Adds to the assignments of UPDATE and MERGE what they leave to the table: a generated column that
 * is not set gets its value of the row as it will be, when a column that it is computed from is set.
 *
 * {{{
 *   UpdateTable [a = 1], pending(c)     =>     UpdateTable [a = 1, g = f(1)], c
 * }}}
 */
private[spark] final case class ComputeChangedColumns(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case update @ UpdateTable(table, assignments, Some(PendingColumns(condition)))
        if table.resolved && assignments.forall(_.resolved) && condition.forall(_.resolved) =>
      val all = changesOf(table).fold(assignments)(_.updated(assignments))
      val done = update.copy(assignments = all, condition = condition)
      done.copyTagsFrom(update)
      done
    case merge: MergeIntoTable if isReady(merge) =>
      val changes = changesOf(merge.targetTable)
      def completed(action: MergeAction): MergeAction = (action, changes) match {
        case (update: UpdateAction, Some(c)) =>
          update.copy(assignments = c.updated(update.assignments))
        case _ => action
      }
      def inserting(action: MergeAction, lane: Int): MergeAction = (action, changes) match {
        case (insert: InsertAction, Some(c)) =>
          val lanes = merge.notMatchedActions.length
          insert.copy(assignments = c.inserted(insert.assignments, lane, lanes))
        case _ => action
      }
      val done = merge.copy(
        mergeCondition = merge.mergeCondition.asInstanceOf[PendingColumns].condition.get,
        matchedActions = merge.matchedActions.map(completed),
        notMatchedActions =
          merge.notMatchedActions.zipWithIndex.map { case (a, lane) => inserting(a, lane) },
        notMatchedBySourceActions = merge.notMatchedBySourceActions.map(completed)
      )
      val described = DescribeMerge(spark.asInstanceOf[classic.SparkSession], done)
      described.copyTagsFrom(merge)
      if (described.withSchemaEvolution && isOurs(described.targetTable))
        WriteCommandShims.aligned(described)
      else described
  }

  private def isReady(merge: MergeIntoTable): Boolean = merge.mergeCondition match {
    case PendingColumns(condition) =>
      val actions =
        merge.matchedActions ++ merge.notMatchedActions ++ merge.notMatchedBySourceActions
      merge.childrenResolved && condition.forall(_.resolved) && actions.forall(_.resolved)
    case _ => false
  }

  private def isOurs(table: LogicalPlan): Boolean = EliminateSubqueryAliases(table) match {
    case ExtractV2Table(_: ComputesColumns) => true
    case _ => false
  }

  private def changesOf(table: LogicalPlan): Option[ChangedColumns] =
    EliminateSubqueryAliases(table) match {
      case relation @ ExtractV2Table(table: ComputesColumns)
          if table.computesColumns =>
        val session = spark.asInstanceOf[classic.SparkSession]
        val values = new ColumnValues(session, relation.schema, table.generatedColumns)
        Some(new ChangedColumns(relation.name, relation.output, values, table.identityColumns))
      case _ => None
    }
}

/**
 * @param table its name, for errors
 * @param columns of the table, as the statement sees them
 */
private final class ChangedColumns(
    table: String,
    columns: Seq[Attribute],
    values: ColumnValues,
    identity: Seq[IdentityColumn]
) {
  private val generated = columns.filter(c => values.isGenerated(c.name))

  def updated(assignments: Seq[Assignment]): Seq[Assignment] = {
    def isSet(column: Attribute): Boolean =
      assignments.exists(_.key.exists(_.semanticEquals(column)))
    identity.find(c => isSet(named(c.name)))
      .foreach(c => throw IdentityColumn.updated(table, c.name))
    val added = generated.filterNot(isSet).filter { column =>
      values.basesOf(column.name).exists(base => isSet(named(base)))
    }
    assignments ++ added.map { column =>
      Assignment(column, values.of(column.name, base => newValue(named(base), assignments)))
    }
  }

  /** @param lane which of the statement's `lanes` clauses this is: they number rows in turns */
  def inserted(assignments: Seq[Assignment], lane: Int, lanes: Int): Seq[Assignment] = {
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
        valueGiven(named(base))
          .getOrElse(ResolveDefaultColumns.getDefaultValueExprOrNullLit(named(base)))
    val computed = generated.filter(valueGiven(_).isEmpty)
      .map(column => Assignment(column, values.of(column.name, valueOf)))
    assignments ++ numbered ++ computed
  }

  private def generatedFromIdentity(column: String): DeltaicException = new DeltaicException(
    "DELTAIC_UNSUPPORTED_OPERATION",
    Map(
      "table" -> table,
      "operation" -> s"MERGE that inserts rows with columns generated from identity column $column"
    )
  )

  private def named(column: String): Attribute =
    columns.find(_.name.equalsIgnoreCase(column)).get

  /** The column's own value with all that is assigned to it, or to fields in it, in place. */
  private def newValue(column: Attribute, assignments: Seq[Assignment]): Expression =
    assignments.filter(_.key.exists(_.semanticEquals(column))).foldLeft[Expression](column) {
      (value, set) =>
        pathIn(set.key) match {
          case Nil => set.value
          case path => UpdateFields(value, path.map(quoted).mkString("."), set.value)
        }
    }

  /** The fields that lead to an assigned one; none for a whole column. */
  private def pathIn(key: Expression): Seq[String] = key match {
    case field: GetStructField => pathIn(field.child) :+ field.extractFieldName
    case _ => Nil
  }

  private def quoted(name: String): String = "`" + name.replace("`", "``") + "`"
}
