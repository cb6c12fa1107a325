package io.deltaic.spark.sql

import java.util.Locale

import org.apache.spark.sql.catalyst.SQLConfHelper
import org.apache.spark.sql.catalyst.analysis.{PlanWithUnresolvedIdentifier, UnresolvedRelation}
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  AttributeMap,
  AttributeReference,
  Cast,
  Expression
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumnsUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.PaddingInternals
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.scan.AnalyzedColumns

/**
 * Wraps the target of a DELETE, UPDATE or MERGE that is a temporary view, or a query of its WITH clause, until it is
 * resolved. It prevents Spark from resolving the statement with the view's columns: they are not the table's, and
 * have no defaults.
 */
private[spark] final case class ViewTarget(child: LogicalPlan) extends UnaryNode {
  override lazy val resolved: Boolean = false
  override def output: Seq[Attribute] = Nil
  override protected def withNewChildInternal(newChild: LogicalPlan): ViewTarget =
    copy(child = newChild)
}

/**
 * Wraps the table of a DELETE, UPDATE or MERGE on a temporary view of some of its columns, until the
 * statement is resolved: it exposes only the columns of the view, by their names there.
 *
 * @param columns of the table, with their names in the view
 */
private[spark] final case class ShownColumns(columns: Seq[Attribute], child: LogicalPlan)
    extends UnaryNode {
  override def output: Seq[Attribute] = columns
  override protected def withNewChildInternal(newChild: LogicalPlan): ShownColumns =
    copy(child = newChild)
}

private[sql] object ShownColumns {
  def in(target: LogicalPlan): Option[ShownColumns] = target match {
    case alias: SubqueryAlias => in(alias.child)
    case shown: ShownColumns => Some(shown)
    case _ => None
  }

  /**
   * The column that a view exposes, without its alias. Spark casts the columns of a view to the types that they had
   * when it was created, which may be the same.
   */
  def stored(shown: Expression): Expression = shown match {
    case Alias(value, _) => stored(value)
    case cast: Cast if DataTypeUtils.sameType(cast.dataType, cast.child.dataType) =>
      stored(cast.child)
    case other => other
  }
}

/**
 * Marks such targets in a parsed statement.
 *
 * @param mayBeCreated whether a view may be created before the statement runs, as in a script
 */
private[sql] final class ViewTargets(spark: SparkSession, mayBeCreated: Boolean)
    extends SQLConfHelper {

  /** @param queries the names in its WITH clause, which take precedence over views of the same names */
  def marked(statement: LogicalPlan, queries: Seq[String] = Nil): LogicalPlan = {
    def isMarked(target: LogicalPlan): Boolean = mayBeView(target, queries)
    statement match {
      case delete: DeleteFromTable if isMarked(delete.table) =>
        delete.copy(table = ViewTarget(delete.table))
      case update: UpdateTable if isMarked(update.table) =>
        update.copy(table = ViewTarget(update.table))
      case merge: MergeIntoTable if isMarked(merge.targetTable) =>
        merge.copy(targetTable = ViewTarget(merge.targetTable))
      case other => other
    }
  }

  private def mayBeView(target: LogicalPlan, queries: Seq[String]): Boolean = target match {
    case alias: SubqueryAlias => mayBeView(alias.child, queries)
    case named: UnresolvedRelation =>
      mayBeCreated || spark.sessionState.catalog.isTempView(named.multipartIdentifier) ||
      queries.exists(query => named.multipartIdentifier.corresponds(Seq(query))(conf.resolver))
    case _: PlanWithUnresolvedIdentifier => true
    case _ => false
  }
}

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
    case update: UpdateTable if ComputeChangedColumns.isReady(update) =>
      onTable(update, update.table)
    case merge: MergeIntoTable if ComputeChangedColumns.isReady(merge) =>
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
