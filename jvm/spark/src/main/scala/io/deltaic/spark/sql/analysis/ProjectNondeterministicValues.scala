package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.catalog.target.MergeTarget
import io.deltaic.spark.rowlevel.RowLevelChange

/**
 * Adds to the plan of a change the values and metadata columns that its expressions need and Spark's plan lacks.
 *
 * {{{
 *   MergeRows [UPDATE v = once(uuid())]             MergeRows [UPDATE v = value]
 *   +- Join                                   =>    +- Project [*, uuid() AS value]
 *                                                      +- Join
 *
 *   Filter [metadata(_metadata).row_index < 5]      Filter [_metadata.row_index < 5]
 *   +- t [a, b]                               =>    +- t [a, b, _metadata]
 * }}}
 *
 * Spark's own group filter for the files of a change is removed: it would run the statement's whole join
 * first, for every column with statistics, and use the result only for a single column. See
 * [[PruneMergeTarget]].
 */
private[spark] object ProjectNondeterministicValues extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case WithCTE(command: Command, definitions) => WithCTE(completed(command), definitions)
    case command => completed(command)
  }

  private def completed(command: LogicalPlan): LogicalPlan = command match {
    case write @ WriteDelta(ExtractV2Table(table), condition, query, _, _, _, _)
        if !write.analyzed =>
      write.operation match {
        case change: RowLevelChange =>
          change.describe(unmarked(condition))
          write.copy(
            condition = unmarked(condition),
            query = computed(withMetadata(query, table)),
            groupFilterCondition = None
          )
        case _ => write
      }
    case merge @ InsertOnlyMerge(ExtractV2Table(table: MergeTarget), query, _, _)
        if !merge.analyzed =>
      merge.copy(query = computed(withMetadata(query, table)))
    case other => other
  }

  private def unmarked(expression: Expression): Expression = expression.transformUp {
    case RowMetadata(column) => column
  }

  /** @param table the target, compared by reference */
  private def withMetadata(query: LogicalPlan, table: Table): LogicalPlan = {
    def isOfTarget(plan: LogicalPlan): Boolean = plan.exists {
      case relation: DataSourceV2Relation => relation.table eq table
      case _ => false
    }
    def exposing(plan: LogicalPlan, columns: Seq[AttributeReference]): LogicalPlan = plan match {
      case relation: DataSourceV2Relation if relation.table eq table =>
        relation.copy(output = relation.output ++ columns.filterNot(relation.outputSet.contains))
      case other if !isOfTarget(other) => other
      case project: Project =>
        val added = columns.filterNot(project.outputSet.contains)
        project.copy(project.projectList ++ added, exposing(project.child, columns))
      case other => other.mapChildren(exposing(_, columns))
    }
    query.resolveOperatorsUp { case node =>
      val unwrapped = node.transformExpressionsUp { case RowMetadata(column) => column }
      val missing = unwrapped.missingInput.toSeq.collect {
        case column: AttributeReference if MetadataAttribute.isValid(column.metadata) => column
      }
      if (missing.isEmpty) unwrapped else unwrapped.mapChildren(exposing(_, missing))
    }
  }

  /** Adds a projection below each node with such values, which computes them once for each row. */
  private def computed(query: LogicalPlan): LogicalPlan = query.resolveOperatorsUp {
    case node: UnaryNode =>
      val values = node.expressions.flatMap(_.collect { case value: PerRowValue => value })
        .distinctBy(_.id)
      if (values.isEmpty) node
      else {
        val columns = values.map(value => Alias(value.child, value.name)(exprId = value.id))
        val child = Project(node.child.output ++ columns, node.child)
        node.withNewChildren(Seq(child)).transformExpressionsUp {
          case value: PerRowValue => value.reference
        }
      }
  }
}
