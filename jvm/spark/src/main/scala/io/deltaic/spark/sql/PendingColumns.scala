package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, Unevaluable}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.{BooleanType, DataType}

import io.deltaic.spark.catalog.Evolution

/**
 * Stands around the condition of an UPDATE or a MERGE until the columns that the table computes have
 * been added to its assignments. It keeps the statement unresolved: Spark would otherwise rewrite it
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

/**
 * Stands around the target of a MERGE that may add columns to it, until it has them. It keeps Spark from
 * looking for what the clauses assign to, which it would not find, or would leave out.
 */
private[spark] final case class PendingTarget(child: LogicalPlan) extends UnaryNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = child.output
  override protected def withNewChildInternal(newChild: LogicalPlan): PendingTarget =
    copy(child = newChild)
}

/**
 * Marks changes before anything is resolved; see [[EvolveMergedColumns]] and [[ComputeChangedColumns]],
 * which take the marks off.
 */
private[spark] final case class MarkChanges(spark: SparkSession) extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case update: UpdateTable if !isMarked(update.condition) =>
      val marked = update.copy(condition = Some(PendingColumns(update.condition)))
      marked.copyTagsFrom(update)
      marked
    case merge: MergeIntoTable if !isMarked(Some(merge.mergeCondition)) =>
      val evolves = merge.withSchemaEvolution || Evolution.of(spark, _ => None) != Evolution.No
      val marked = merge.copy(
        targetTable = if (evolves) PendingTarget(merge.targetTable) else merge.targetTable,
        mergeCondition = PendingColumns(Some(merge.mergeCondition))
      )
      marked.copyTagsFrom(merge)
      marked
  }

  private def isMarked(condition: Option[Expression]): Boolean =
    condition.exists(_.isInstanceOf[PendingColumns])
}
