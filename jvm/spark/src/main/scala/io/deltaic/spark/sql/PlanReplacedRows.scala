package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OverwriteByExpression}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.deltaic.ExpressionShims
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table

import io.deltaic.spark.write.{Replaced, WriteTarget, WriteTargets}

/** Keeps the condition's own words for the history, which are others once it is optimised. */
private[spark] object NameReplacedRows extends Rule[LogicalPlan] {

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

  /** Without the casts of literals that the analyser has put in. */
  private def folded(condition: Expression): Expression = condition.transformUp {
    case Cast(literal: Literal, dataType, zone, mode) if literal.value != null =>
      Literal.create(Cast(literal, dataType, zone, mode).eval(), dataType)
  }
}

/**
 * Hands the condition of the rows that a write replaces to its table as it is. Spark would translate it
 * for connectors, which not every condition survives. It runs once, when conditions are optimised and
 * no write has been built. A condition that has come to be true of every row is handed over like others.
 *
 * {{{
 *   Overwrite t WHERE c       =>     Overwrite (t replacing c) WHERE true
 *   +- query                         +- query
 * }}}
 */
private[spark] object PlanReplacedRows extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.transform {
    case overwrite @ OverwriteByExpression(
          relation @ ExtractV2Table(table: WriteTargets),
          condition,
          _,
          _,
          _,
          _,
          None,
          _
        ) if condition != TrueLiteral || isStated(table.writeTarget) =>
      val spelled = ExpressionShims.spelledAs(condition, relation.output)
      val replacing = table.writeTarget.copy(replacing = Some(Replaced.Rows(spelled)))
      overwrite.copy(
        table = relation.copy(table = table.forWriting(replacing)),
        deleteExpr = TrueLiteral
      )
  }

  /** Whether there is a condition, which the target has not been handed yet. */
  private def isStated(target: WriteTarget): Boolean =
    target.replacedSql.isDefined && target.replacing.isEmpty
}
