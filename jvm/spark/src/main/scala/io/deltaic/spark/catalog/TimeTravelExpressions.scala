package io.deltaic.spark.catalog

import org.apache.spark.sql.catalyst.analysis.{
  RelationTimeTravel,
  TimeTravelSpec,
  UnresolvedRelation
}
import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, Literal, SubqueryExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, OneRowRelation, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.TimestampType

/**
 * Evaluates the time in ``delta.`/path` TIMESTAMP AS OF`` before Spark looks for the table.
 *
 * {{{
 *   RelationTimeTravel                              RelationTimeTravel
 *     delta.`/path`                          =>       delta.`/path`
 *     current_timestamp() - INTERVAL 1 DAY            TIMESTAMP'2026-01-30 12:00:00'
 * }}}
 *
 * Spark asks the catalog for a table only once the functions in its time are resolved, and by then its
 * own rule for files in SQL has refused the path, which it takes for one of a file format.
 */
private[spark] case class TimeTravelExpressions(spark: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperators {
    case travel @ RelationTimeTravel(relation: UnresolvedRelation, Some(time), None)
        if isPath(relation) && !time.resolved && !SubqueryExpression.hasSubquery(time) =>
      travel.copy(timestamp = Some(evaluated(time)))
  }

  private def isPath(relation: UnresolvedRelation): Boolean =
    relation.multipartIdentifier match {
      case Seq(provider, _) => TableLocation.isDeltaic(provider)
      case _ => false
    }

  private def evaluated(time: Expression): Literal = {
    val query = Project(Seq(Alias(time, "time")()), OneRowRelation())
    val resolved = spark.sessionState.executePlan(query).analyzed.expressions.head match {
      case Alias(expression, _) => expression
      case other => other
    }
    val zone = spark.sessionState.conf.sessionLocalTimeZone
    Literal(TimeTravelSpec.resolveTimestampExpression(resolved, zone), TimestampType)
  }
}
