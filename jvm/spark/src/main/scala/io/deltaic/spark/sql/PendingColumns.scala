package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions.{Expression, Unevaluable}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.{BooleanType, DataType}

/**
 * Stands around the condition of an UPDATE or a MERGE until the columns that the table computes have
 * been added to its assignments. It keeps the statement unresolved: Spark would otherwise rewrite it
 * in the same pass that resolves it, before any rule of an extension has seen it.
 *
 * @param addsColumns whether new columns of the source are to become the table's
 */
private[spark] final case class PendingColumns(
    condition: Option[Expression],
    addsColumns: Boolean = false
) extends Expression
    with Unevaluable {
  override lazy val resolved: Boolean = false
  override def children: Seq[Expression] = condition.toSeq
  override def nullable: Boolean = true
  override def dataType: DataType = BooleanType
  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]
  ): PendingColumns = copy(condition = newChildren.headOption)
}

/** Marks changes before anything is resolved; see [[ComputeChangedColumns]], which takes the mark off. */
private[spark] object MarkChanges extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case update: UpdateTable if !isMarked(update.condition) =>
      val marked = update.copy(condition = Some(PendingColumns(update.condition)))
      marked.copyTagsFrom(update)
      marked
    case merge: MergeIntoTable if !isMarked(Some(merge.mergeCondition)) =>
      val pending = PendingColumns(Some(merge.mergeCondition), addsColumns(merge))
      val marked = merge.copy(mergeCondition = pending)
      marked.copyTagsFrom(merge)
      marked
  }

  private def addsColumns(merge: MergeIntoTable): Boolean =
    merge.withSchemaEvolution && (merge.matchedActions ++ merge.notMatchedActions).exists {
      case _: UpdateStarAction | _: InsertStarAction => true
      case _ => false
    }

  private def isMarked(condition: Option[Expression]): Boolean =
    condition.exists(_.isInstanceOf[PendingColumns])
}
