package io.deltaic.spark.sql.analysis.target

import java.util.Locale

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeMap, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumnsUtils
import org.apache.spark.sql.deltaic.PaddingInternals
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.schema.AnalyzedColumns
import io.deltaic.spark.sql.analysis.{PendingColumns, ShownColumns, ViewTarget}

/**
 * Replaces a temporary view in the target of a statement by its table, if the view only projects columns of the table:
 * any of them, in any order, by any names, of all rows.
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
 * If the view has only some columns, or other names, the statement is resolved with these first, and then rewritten to
 * the table: an updated row keeps the values of other columns, an inserted row gets their defaults.
 *
 * {{{
 *   UpdateTable [s = 'a'], id = 1           UpdateTable [s = 'a'], id = 1
 *   +- SubqueryAlias v                =>    +- SubqueryAlias v
 *      +- ShownColumns [id, s]                 +- TargetTable t [id, hidden, s]
 *         +- TargetTable t [id, hidden, s]
 * }}}
 *
 * A query of the WITH clause is treated like such a view. Any other view or query stays in the plan, and
 * [[CheckUnsupportedDml]] and [[RefuseOtherTargets]] report it. Like the resolution of a table by name, it reads the log:
 * a view of a DataFrame may be older than the table.
 *
 * `DataFrame.mergeInto(view)` has no marker, and Spark has resolved it with the view's columns: these are replaced by
 * the table's. Spark has resolved DEFAULT to null then, so the columns must have no defaults.
 */
private[spark] object ResolveViewTargets extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case ViewTarget(target) if target.resolved => withoutView(target)
    case merge: MergeIntoTable if merge.targetTable.resolved && hasView(merge.targetTable) =>
      val table = withoutView(merge.targetTable)
      if (hasView(table) || table.output.exists(hasDefault)) merge
      else {
        val columns = AttributeMap(merge.targetTable.output.zip(table.output))
        onTable(merge.copy(targetTable = table).rewriteAttrs(columns), table)
      }
    case delete: DeleteFromTable if delete.condition.resolved => onTable(delete, delete.table)
    case update: UpdateTable if PendingColumns.isReady(update) =>
      onTable(update, update.table)
    case merge: MergeIntoTable if PendingColumns.isReady(merge) =>
      onTable(merge, merge.targetTable)
  }

  private def onTable(statement: LogicalPlan, target: LogicalPlan): LogicalPlan =
    ShownColumns.in(target).fold(statement) { shown =>
      val stored = AttributeMap(shown.child.output.map(column => column -> column))
      val named = statement.transformExpressions { case column: AttributeReference =>
        stored.get(column).fold(column)(c => column.withName(c.name))
      }
      val done = AnalysisHelper.allowInvokingTransformsInAnalyzer {
        named.transform { case inner: ShownColumns if inner.child eq shown.child => inner.child }
      }
      done.copyTagsFrom(statement)
      done
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
    case query: Project => tableShownBy(query).getOrElse(target)
    case other => other
  }

  private def tableShownBy(rows: LogicalPlan): Option[LogicalPlan] = {
    val stored =
      AnalysisHelper.allowInvokingTransformsInAnalyzer(PaddingInternals.withoutPadding(rows))
    shownIn(stored).filter(_.isUnambiguous).flatMap { shown =>
      val now = atNewestVersion(shown.relation)
      val columns = shown.columns.flatMap { case (name, column) =>
        now.output.find(isSame(_, column)).map(_.withName(name))
      }
      if (columns.length < shown.columns.length) None
      else if (columns.corresponds(now.output)(isItself)) Some(now)
      else Some(ShownColumns(columns, now))
    }
  }

  /** The exposed columns, if the plan only projects columns of a table. */
  private def shownIn(plan: LogicalPlan): Option[Shown] = plan match {
    case relation @ ExtractV2Table(_: DeltaicTable) =>
      Some(Shown(relation, relation.output.map(column => column.name -> column)))
    case alias: SubqueryAlias => shownIn(alias.child)
    case View(_, true, rows, _) => shownIn(rows)
    case Project(columns, rows) =>
      shownIn(rows).flatMap { below =>
        val shown = columns.flatMap { column =>
          val place = rows.output.indexWhere(ShownColumns.stored(column).semanticEquals(_))
          below.columns.lift(place).map { case (_, stored) => column.name -> stored }
        }
        Option.when(shown.length == columns.length)(below.copy(columns = shown))
      }
    case _ => None
  }

  private def atNewestVersion(relation: DataSourceV2Relation): DataSourceV2Relation = {
    val table = relation.table.asInstanceOf[DeltaicTable].forCommandOnView(relation.options)
    val options = AnalyzedColumns.without(relation.options)
    DataSourceV2Relation.create(table, relation.catalog, relation.identifier, options)
  }

  private def isItself(shown: Attribute, column: Attribute): Boolean =
    shown.exprId == column.exprId && conf.resolver(shown.name, column.name)

  private def isSame(left: Attribute, right: Attribute): Boolean =
    conf.resolver(left.name, right.name) && DataTypeUtils.sameType(left.dataType, right.dataType)

  /** @param columns of the relation, each with the name by which it is shown */
  private final case class Shown(
      relation: DataSourceV2Relation,
      columns: Seq[(String, Attribute)]
  ) {

    /** Whether names and columns correspond one to one. */
    def isUnambiguous: Boolean = {
      val names = columns.map { case (name, _) =>
        if (conf.caseSensitiveAnalysis) name else name.toLowerCase(Locale.ROOT)
      }
      names.distinct.length == columns.length &&
      columns.map(_._2.exprId).distinct.length == columns.length
    }
  }
}
