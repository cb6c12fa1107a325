package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OverwriteByExpression}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table

import io.deltaic.spark.write.WriteTargets

/** Records the SQL of the condition for the history, before the optimizer changes it. */
private[spark] object ResolveReplaceWhere extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case overwrite @ OverwriteByExpression(
          relation @ ExtractV2Table(table: WriteTargets),
          condition,
          _,
          _,
          _,
          _,
          _,
          _
        )
        if overwrite.resolved && condition != TrueLiteral && table.writeTarget.replacedSql.isEmpty =>
      val named = table.writeTarget.copy(replacedSql = Some(folded(condition).sql))
      overwrite.copy(table = relation.copy(table = table.forWriting(named)))
  }

  /** The condition without the casts of literals that the analyzer has added. */
  private def folded(condition: Expression): Expression = condition.transformUp {
    case Cast(literal: Literal, dataType, zone, mode) if literal.value != null =>
      Literal.create(Cast(literal, dataType, zone, mode).eval(), dataType)
  }
}
