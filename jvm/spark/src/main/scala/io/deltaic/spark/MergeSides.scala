package io.deltaic.spark

import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, AttributeSet, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MergeAction}
import org.apache.spark.sql.classic
import org.apache.spark.sql.deltaic.DataFrameInternals
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/**
 * Target and source of `DeltaTable.merge`. The source may be derived from the target's own DataFrame, and then has
 * the target's attributes. In that case the target gets new attributes, to keep the two apart.
 */
private[spark] final class MergeSides(targetDf: classic.DataFrame, sourceDf: classic.DataFrame) {

  val source: LogicalPlan = RowLevelStatements.sourceOf(sourceDf)

  private val originalTarget = RowLevelStatements.targetOf(targetDf)
  private val shared: AttributeSet =
    originalTarget.outputSet.filter(column => source.exists(_.outputSet.contains(column)))

  val target: LogicalPlan =
    if (shared.isEmpty) originalTarget
    else originalTarget.transform { case relation: DataSourceV2Relation => relation.newInstance() }

  private lazy val sourceDfIds = DataFrameInternals.idsOf(sourceDf)

  /**
   * Rebinds the shared columns of an expression. A column that both sides have is the source's if it was taken from the
   * source DataFrame itself. From any other DataFrame it is resolved by its name, which may be ambiguous.
   */
  def rebind(expression: Expression): Expression =
    if (shared.isEmpty) expression
    else
      expression.transform {
        case column: AttributeReference if shared.contains(column) && !isOfSource(column) =>
          UnresolvedAttribute(Seq(column.name))
      }

  def rebind(action: MergeAction): MergeAction =
    rebind(action: Expression).asInstanceOf[MergeAction]

  private def isOfSource(column: AttributeReference): Boolean =
    DataFrameInternals.idIn(column).exists(sourceDfIds)
}
