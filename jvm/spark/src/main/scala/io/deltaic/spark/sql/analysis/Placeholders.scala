package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.types.{BooleanType, DataType}

/*
 * The placeholders in the plan of a DELETE, UPDATE or MERGE, and when they are removed (docs/architecture.md, Life of a
 * MERGE):
 *
 *   parser       ViewTarget            ResolveViewTargets
 *   analysis     ShownColumns          ResolveViewTargets, once the statement is resolved
 *                PendingColumns        ComputeChangedColumns
 *                PendingTarget         EvolveMergedColumns
 *                RowMetadata           ProjectNondeterministicValues
 *                PerRowValue           ProjectNondeterministicValues
 */

/**
 * Wraps the target of a DELETE, UPDATE or MERGE that is a temporary view, or a query of its WITH clause, until it is
 * resolved. It prevents Spark from resolving the statement with the view's columns: they are not the table's, and
 * have no defaults.
 */
private[spark] final case class ViewTarget(child: LogicalPlan) extends UnaryNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
  override protected def withNewChildInternal(newChild: LogicalPlan): ViewTarget =
    copy(child = newChild)
}

/**
 * Wraps the table of a DELETE, UPDATE or MERGE on a temporary view of some of its columns, until the
 * statement is resolved: it exposes only the columns of the view, by their names there.
 *
 * @param columns of the table, with their names in the view
 */
private[spark] final case class ShownColumns(columns: Seq[Attribute], child: LogicalPlan)
    extends UnaryNode {
  override def output: Seq[Attribute] = columns
  override protected def withNewChildInternal(newChild: LogicalPlan): ShownColumns =
    copy(child = newChild)
}

private[sql] object ShownColumns {
  def in(target: LogicalPlan): Option[ShownColumns] = target match {
    case alias: SubqueryAlias => in(alias.child)
    case shown: ShownColumns => Some(shown)
    case _ => None
  }

  /**
   * The column that a view exposes, without its alias. Spark casts the columns of a view to the types that they had
   * when it was created, which may be the same.
   */
  def stored(shown: Expression): Expression = shown match {
    case Alias(value, _) => stored(value)
    case cast: Cast if DataTypeUtils.sameType(cast.dataType, cast.child.dataType) =>
      stored(cast.child)
    case other => other
  }
}

/**
 * Wraps the condition of an UPDATE or a MERGE until generated and identity columns have
 * been added to its assignments. It keeps the statement unresolved: otherwise Spark would rewrite it
 * in the same pass that resolves it, before any rule of an extension has seen it.
 */
private[spark] final case class PendingColumns(condition: Option[Expression]) extends Expression
    with Unevaluable {
  override lazy val resolved: Boolean = false
  override def children: Seq[Expression] = condition.toSeq
  override def nullable: Boolean = true
  override def dataType: DataType = BooleanType
  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]
  ): PendingColumns = copy(condition = newChildren.headOption)
}

private[spark] object PendingColumns {

  /** Whether everything is resolved except for the markers. */
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
 * Wraps the target of a MERGE that may add columns to it, until it has them. It prevents Spark from
 * resolving the assigned columns of clauses, which it would not find, or would leave out.
 */
private[spark] final case class PendingTarget(child: LogicalPlan) extends UnaryNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: LogicalPlan): PendingTarget =
    copy(child = newChild)
}

/**
 * A nondeterministic value. Assigned values may be copied to generated columns and
 * to fields; all copies are this one value, which [[ProjectNondeterministicValues]] computes once for each row.
 */
private[spark] final case class PerRowValue(child: Expression, id: ExprId) extends UnaryExpression
    with Unevaluable {
  override lazy val deterministic: Boolean = true
  override def nullable: Boolean = child.nullable
  override def dataType: DataType = child.dataType
  override def sql: String = child.sql

  def name: String = s"value_${id.id}"

  def reference: AttributeReference = AttributeReference(name, dataType, nullable)(exprId = id)

  override protected def withNewChildInternal(newChild: Expression): PerRowValue =
    copy(child = newChild)
}

/**
 * A metadata column of the table that a statement changes. For a plain reference, Spark would add all metadata columns
 * to the table's own, and require assignments to them.
 */
private[spark] final case class RowMetadata(column: AttributeReference) extends LeafExpression
    with Unevaluable {
  override def nullable: Boolean = column.nullable
  override def dataType: DataType = column.dataType
  override def sql: String = column.sql
}

private[spark] object RowMetadata {

  /** The expression, with the metadata columns of this table wrapped. */
  def marked(table: LogicalPlan)(expression: Expression): Expression = {
    val columns = AttributeSet(table.metadataOutput)
    if (columns.isEmpty) expression
    else
      expression.transformUp {
        case column: AttributeReference if columns.contains(column) => RowMetadata(column)
      }
  }
}
