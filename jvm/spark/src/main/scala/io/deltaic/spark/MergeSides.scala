package io.deltaic.spark

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MergeAction}
import org.apache.spark.sql.classic
import org.apache.spark.sql.deltaic.FrameShims
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/**
 * Target and source of a MERGE that a `DeltaTable` asks for. The source may be made of the target's own frame, and then has
 * the target's columns: to tell the two apart, the target gets new ones.
 */
private[spark] final class MergeSides(targetFrame: classic.DataFrame, frame: classic.DataFrame) {

  val source: LogicalPlan = RowChanges.sourceOf(frame)

  private val asNamed = RowChanges.targetOf(targetFrame)
  private val shared: AttributeSet =
    asNamed.outputSet.filter(column => source.exists(_.outputSet.contains(column)))

  val target: LogicalPlan =
    if (shared.isEmpty) asNamed
    else asNamed.transform { case relation: DataSourceV2Relation => relation.newInstance() }

  private lazy val sourceFrames = FrameShims.numbersOf(frame)

  /**
   * An expression about the two. A column that both have is the source's if it was taken from the source itself. From
   * any other frame it may be meant as either's: then its name decides, or is ambiguous.
   */
  def meant(expression: Expression): Expression =
    if (shared.isEmpty) expression
    else
      expression.transform {
        case column: AttributeReference if shared.contains(column) && !isOfSource(column) =>
          UnresolvedAttribute(Seq(column.name))
      }

  def meant(action: MergeAction): MergeAction =
    meant(action: Expression).asInstanceOf[MergeAction]

  private def isOfSource(column: AttributeReference): Boolean =
    FrameShims.numberIn(column).exists(sourceFrames)
}
