package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.catalyst.analysis.{
  RelationTimeTravel,
  TimeTravelSpec,
  UnresolvedRelation
}
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  Expression,
  Literal,
  SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.types.TimestampType

import io.deltaic.spark.catalog.TableLocation

/**
 * ``delta.`/path` TIMESTAMP AS OF time``, until the functions in the time are resolved.
 *
 * Spark loads the table from the catalog only after that, and by then its own rule for files in SQL has refused the
 * path, which it interprets as one of a file format.
 */
private[spark] final case class PathTimeTravel(relation: UnresolvedRelation, time: Expression)
    extends LeafNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
}

private[spark] object PathTimeTravel {

  /** The node by which [[ParsedStatement]] replaces such a relation. */
  def of(travel: RelationTimeTravel): Option[PathTimeTravel] = travel match {
    case RelationTimeTravel(relation: UnresolvedRelation, Some(time), None)
        if isPath(relation) && !time.isInstanceOf[Literal] &&
        !SubqueryExpression.hasSubquery(time) =>
      Some(PathTimeTravel(relation, time))
    case _ => None
  }

  private def isPath(relation: UnresolvedRelation): Boolean =
    relation.multipartIdentifier match {
      case Seq(provider, _) => TableLocation.isDeltaic(provider)
      case _ => false
    }
}

/**
 * Evaluates the time, so that Spark can resolve the table.
 *
 * {{{
 *   PathTimeTravel                                  RelationTimeTravel
 *     delta.`/path`                          =>       delta.`/path`
 *     current_timestamp() - INTERVAL 1 DAY            TIMESTAMP'2026-01-30 12:00:00'
 * }}}
 */
private[spark] object ResolvePathTimeTravel extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case PathTimeTravel(relation, time) if time.resolved =>
      val micros = TimeTravelSpec.resolveTimestampExpression(time, conf.sessionLocalTimeZone)
      RelationTimeTravel(relation, Some(Literal(micros, TimestampType)), None)
  }
}
