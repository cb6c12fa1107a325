package io.deltaic.spark.sql.analysis.target

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.execution.datasources.v2.ExtractV2Table
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.sources.DataSourceRegister

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.spark.catalog.DeltaicTable

/**
 * Refuses a DELETE, UPDATE or MERGE whose target is not a table, for which Spark would report an error about its
 * own plans: views of DataFrames, files of other formats, queries of the WITH clause.
 *
 * It checks analyzed statements: at this point another extension has replaced the statements that it executes, and
 * the names of views are still in the plan. Tables of other catalogs and formats are left to Spark, which checks their
 * capabilities.
 */
private[spark] object RefuseOtherTargets extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    ChangedTarget.of(plan).filterNot(isTable).foreach(target => throw refused(target))
    plan
  }

  private def isTable(target: LogicalPlan): Boolean = EliminateSubqueryAliases(target) match {
    case ExtractV2Table(_) => true
    case other => leadsToOther(other)
  }

  /** Spark removes views and projections without effect, and its error names a table that it cannot change. */
  private def leadsToOther(plan: LogicalPlan): Boolean = plan match {
    case ExtractV2Table(table) => !table.isInstanceOf[DeltaicTable]
    case relation: LogicalRelation => relation.catalogTable.isDefined
    case above @ (_: View | _: SubqueryAlias | _: Project) => leadsToOther(above.children.head)
    case _ => false
  }

  private def refused(target: LogicalPlan): DeltaicThrowable = {
    val (name, found) = named(target)
    DeltaicException("DELTAIC_NAME_IS_NOT_A_TABLE", Map("name" -> name, "found" -> found))
  }

  private def named(target: LogicalPlan): (String, String) = target match {
    case SubqueryAlias(_, below: SubqueryAlias) => named(below)
    case SubqueryAlias(_, view: View) => named(view)
    case SubqueryAlias(_, files: LogicalRelation) => named(files)
    case SubqueryAlias(_, table: HiveTableRelation) => named(table)
    case SubqueryAlias(identifier, query) =>
      (quoteIfNeeded(identifier.name), ofQuery(query))
    case view: View =>
      val kind = if (view.isTempView) "a temporary view" else "a view"
      (view.desc.identifier.unquotedString, s"$kind without a Delta table behind it")
    case HiveTableRelation(table, _, _, _, _) =>
      (table.identifier.unquotedString, "a table of another format")
    case LogicalRelation(files: HadoopFsRelation, _, _, _, _) =>
      val format = files.fileFormat match {
        case registered: DataSourceRegister => registered.shortName()
        case other => other.toString
      }
      val paths = files.location.rootPaths.map(path => s"$format.`$path`")
      (paths.mkString(", "), "files of another format")
    case other => (other.nodeName, "rows without a table")
  }

  private def ofQuery(query: LogicalPlan): String = {
    val what = "a query of the WITH clause"
    query.collectFirst { case ExtractV2Table(table: DeltaicTable) => table.name() }
      .fold(s"$what without a Delta table behind it")(ViewOperation.refusal(what, query, _))
  }
}

private[sql] object ChangedTarget {

  /** The target of a DELETE, UPDATE or MERGE. */
  def of(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case WithCTE(statement, _) => of(statement)
    case DeleteFromTable(target, _) => Some(target)
    case UpdateTable(target, _, _) => Some(target)
    case merge: MergeIntoTable => Some(merge.targetTable)
    case _ => None
  }
}
