package io.deltaic.spark.sql.parser

import org.apache.spark.sql.catalyst.analysis.{RelationTimeTravel, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.CurrentOrigin
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.command.{DescribeQueryCommand, ExplainCommand}

import io.deltaic.spark.sql.analysis.{PathTimeTravel, TableChanges}

/**
 * Adds nodes to the parsed plan of a statement that must be present before Spark resolves tables.
 * A rule would be too late: rules of extensions are not guaranteed to run before Spark's own in any kind of session, but
 * each kind has our parser (docs/decisions/0032).
 */
private[sql] final class ParsedStatement(spark: SparkSession) {

  def of(plan: LogicalPlan): LogicalPlan = AnalysisHelper.allowInvokingTransformsInAnalyzer {
    plan match {
      case script: CompoundBody => markedScript(script)
      case statement => marked(statement, new MarkViewTargets(spark, mayBeCreated = false))
    }
  }

  private val inScript = new MarkViewTargets(spark, mayBeCreated = true)

  private def markedScript(body: CompoundBody): CompoundBody =
    body.copy(
      collection = body.collection.map(markedPart),
      handlers = body.handlers.map(handler => handler.copy(body = markedScript(handler.body)))
    )

  /** `mapChildren` on nodes of Spark's scripts loses handlers, and does not visit the plan of a single statement. */
  private def markedPart(part: CompoundPlanStatement): CompoundPlanStatement = part match {
    case body: CompoundBody => markedScript(body)
    case single: SingleStatement =>
      CurrentOrigin.withOrigin(single.origin) {
        single.copy(parsedPlan = marked(single.parsedPlan, inScript))
      }
    case other =>
      other.mapChildren {
        case inner: CompoundPlanStatement => markedPart(inner)
        case inner => inner
      }.asInstanceOf[CompoundPlanStatement]
  }

  private def marked(plan: LogicalPlan, views: MarkViewTargets): LogicalPlan = {
    def within(inner: LogicalPlan): LogicalPlan = marked(inner, views)
    val here = plan.transformUp {
      case table: UnresolvedRelation => TableChanges.of(table).getOrElse(table)
      case travel: RelationTimeTravel => PathTimeTravel.of(travel).getOrElse(travel)
      case statement: UnresolvedWith =>
        val queries = statement.cteRelations.map { case (name, alias, depth) =>
          (name, alias.copy(child = within(alias.child)), depth)
        }
        val child = views.marked(statement.child, queries.map { case (name, _, _) => name })
        statement.copy(child = child, cteRelations = queries)
      case explain: ExplainCommand => explain.copy(logicalPlan = within(explain.logicalPlan))
      case describe: DescribeQueryCommand => describe.copy(plan = within(describe.plan))
      case statement => views.marked(statement)
    }
    here.transformAllExpressions { case subquery: SubqueryExpression =>
      subquery.withNewPlan(within(subquery.plan))
    }
  }
}
