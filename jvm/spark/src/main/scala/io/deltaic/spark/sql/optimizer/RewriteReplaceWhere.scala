package io.deltaic.spark.sql.optimizer

import org.apache.spark.sql.catalyst.expressions.Literal.TrueLiteral
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OverwriteByExpression}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.deltaic.ExpressionInternals
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table

import io.deltaic.spark.write.{Replaced, WriteTarget, WriteTargets}

/**
 * Passes the condition of the rows that a write replaces to its table as a Catalyst expression. Spark would translate
 * it to V2 predicates, which do not cover every condition. It runs once, after conditions have been optimized and
 * before the write is built. A condition that has been optimized to true is passed like others.
 *
 * {{{
 *   Overwrite t WHERE c       =>     Overwrite (t replacing c) WHERE true
 *   +- query                         +- query
 * }}}
 */
private[spark] object RewriteReplaceWhere extends Rule[LogicalPlan] {

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
        ) if condition != TrueLiteral || hasCondition(table.writeTarget) =>
      val spelled = ExpressionInternals.spelledAs(condition, relation.output)
      val replacing = table.writeTarget.copy(replacing = Some(Replaced.Rows(spelled)))
      overwrite.copy(
        table = relation.copy(table = table.forWriting(replacing)),
        deleteExpr = TrueLiteral
      )
  }

  /** Whether there is a condition that the target does not have yet. */
  private def hasCondition(target: WriteTarget): Boolean =
    target.replacedSql.isDefined && target.replacing.isEmpty
}
