package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.analysis.{PlanWithUnresolvedIdentifier, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  AttributeMap,
  Cast,
  Expression,
  NamedExpression
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumnsUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.PaddingShims
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.scan.AnalysedColumns

/**
 * Stands around the target of a DELETE, UPDATE or MERGE that names a temporary view, until what the view shows
 * is known. It keeps Spark from resolving the statement with the view's columns: they are not the table's, and
 * have no defaults.
 */
private[spark] final case class ViewTarget(child: LogicalPlan) extends UnaryNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
  override protected def withNewChildInternal(newChild: LogicalPlan): ViewTarget =
    copy(child = newChild)
}

/**
 * Marks such targets in a statement that has been parsed.
 *
 * @param mayComeToBe whether a name that is no view now may be one when the statement runs, as in a script
 */
private[sql] final class ViewTargets(spark: SparkSession, mayComeToBe: Boolean) {

  def marked(statement: LogicalPlan): LogicalPlan = statement match {
    case delete: DeleteFromTable if mayBeView(delete.table) =>
      delete.copy(table = ViewTarget(delete.table))
    case update: UpdateTable if mayBeView(update.table) =>
      update.copy(table = ViewTarget(update.table))
    case merge: MergeIntoTable if mayBeView(merge.targetTable) =>
      merge.copy(targetTable = ViewTarget(merge.targetTable))
    case other => other
  }

  private def mayBeView(target: LogicalPlan): Boolean = target match {
    case alias: SubqueryAlias => mayBeView(alias.child)
    case named: UnresolvedRelation =>
      mayComeToBe || spark.sessionState.catalog.isTempView(named.multipartIdentifier)
    case _: PlanWithUnresolvedIdentifier => true
    case _ => false
  }
}

/**
 * Takes a temporary view off the target of a statement where the view is the table: all of its rows and columns,
 * with their names and types, in their order.
 *
 * {{{
 *   DeleteFromTable [id = 1]               DeleteFromTable [id = 1]
 *   +- ViewTarget                    =>    +- SubqueryAlias v
 *      +- SubqueryAlias v                     +- DataSourceV2Relation t [id, s]
 *         +- View v
 *            +- Project [id, s]
 *               +- SubqueryAlias t
 *                  +- DataSourceV2Relation t [id, s]
 * }}}
 *
 * Any other view stays, for [[RefuseChanges]] to name. Like the resolution of a table by its name, it reads the log: a
 * view of a DataFrame may be older than the table.
 *
 * `DataFrame.mergeInto(view)` comes without a mark, and Spark has resolved it with the view's columns: these become
 * the table's. It has taken DEFAULT for null then, so the table may have no defaults.
 */
private[spark] object ResolveViewTargets extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case ViewTarget(target) if target.resolved => withoutView(target)
    case merge: MergeIntoTable if merge.targetTable.resolved && hasView(merge.targetTable) =>
      val table = withoutView(merge.targetTable)
      if (hasView(table) || table.output.exists(hasDefault)) merge
      else {
        val columns = AttributeMap(merge.targetTable.output.zip(table.output))
        merge.copy(targetTable = table).rewriteAttrs(columns)
      }
  }

  private def hasView(target: LogicalPlan): Boolean = target match {
    case alias: SubqueryAlias => hasView(alias.child)
    case _: View => true
    case _ => false
  }

  private def hasDefault(column: Attribute): Boolean =
    column.metadata.contains(ResolveDefaultColumnsUtils.CURRENT_DEFAULT_COLUMN_METADATA_KEY)

  private def withoutView(target: LogicalPlan): LogicalPlan = target match {
    case alias: SubqueryAlias => alias.withNewChildren(Seq(withoutView(alias.child)))
    case View(_, true, rows, _) => tableShownBy(rows).getOrElse(target)
    case other => other
  }

  private def tableShownBy(rows: LogicalPlan): Option[LogicalPlan] = {
    val stored =
      AnalysisHelper.allowInvokingTransformsInAnalyzer(PaddingShims.withoutPadding(rows))
    relationIn(stored).flatMap { relation =>
      val now = asItIsNow(relation)
      Option.when(haveSameShape(relation.output, now.output))(now)
    }
  }

  /** The table below nothing but names for all that it has. */
  private def relationIn(plan: LogicalPlan): Option[DataSourceV2Relation] = plan match {
    case relation @ ExtractV2Table(_: DeltaicTable) => Some(relation)
    case alias: SubqueryAlias => relationIn(alias.child)
    case View(_, true, rows, _) => relationIn(rows)
    case Project(columns, rows) if showsAll(columns, rows.output) => relationIn(rows)
    case _ => None
  }

  private def asItIsNow(relation: DataSourceV2Relation): DataSourceV2Relation = {
    val table = relation.table.asInstanceOf[DeltaicTable].forCommandOnView(relation.options)
    val options = AnalysedColumns.without(relation.options)
    DataSourceV2Relation.create(table, relation.catalog, relation.identifier, options)
  }

  private def showsAll(columns: Seq[NamedExpression], rows: Seq[Attribute]): Boolean =
    haveSameShape(columns, rows) && columns.zip(rows).forall { case (column, row) =>
      isColumn(column, row)
    }

  private def haveSameShape(left: Seq[NamedExpression], right: Seq[NamedExpression]): Boolean =
    left.length == right.length && left.zip(right).forall { case (a, b) =>
      conf.resolver(a.name, b.name) && DataTypeUtils.sameType(a.dataType, b.dataType)
    }

  /** Spark casts the columns of a view to the types that they had when it was made, which may be the same. */
  private def isColumn(shown: Expression, column: Attribute): Boolean = shown match {
    case Alias(value, _) => isColumn(value, column)
    case cast: Cast =>
      DataTypeUtils.sameType(cast.dataType, cast.child.dataType) && isColumn(cast.child, column)
    case other => other.semanticEquals(column)
  }
}
