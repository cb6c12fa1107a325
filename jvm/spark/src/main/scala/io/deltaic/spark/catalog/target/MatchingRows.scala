package io.deltaic.spark.catalog.target

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.write.{ReplaceWhere, Replaced}

/**
 * The rows of a table that match a row of a query, and are replaced by it (`replaceOn`, `replaceUsing`).
 *
 * The condition is evaluated on the written rows, since another run of the query might return
 * other rows.
 *
 * @param relation the table with its columns after the write
 * @param byName whether columns of the query are matched to the table's by name, or by position
 */
private[spark] final class MatchingRows(
    spark: SparkSession,
    table: DeltaicTable,
    relation: DataSourceV2Relation,
    query: LogicalPlan,
    byName: Boolean
) {

  /** The table's column for each column of the query. */
  private val names: Seq[String] =
    if (!byName) relation.output.map(_.name).take(query.output.length)
    else
      query.output.map { column =>
        relation.output.map(_.name).find(isSame(_, column.name)).getOrElse(column.name)
      }

  /** The columns of the table before the write: existing rows have no others. */
  private val present: Seq[AttributeReference] = {
    val existing = table.tableSchema.all.fieldNames.toSet
    relation.output.filter(column => existing(column.name))
  }

  /** Rows that have equal values in some columns. Null equals nothing. */
  def using(columns: Seq[String]): Replaced = {
    val pairs = columns.map { column =>
      val own = present.find(c => isSame(c.name, column) && names.contains(c.name))
        .getOrElse(throw missing(column))
      own -> own.newInstance()
    }
    val equal: Seq[Expression] = pairs.map { case (old, added) => EqualTo(old, added) }
    Replaced.Matching(
      equal.reduce(And(_, _)),
      AttributeSet(pairs.map(_._2)),
      "replaceUsingCols" -> columns.mkString("(", ", ", ")")
    )
  }

  /**
   * Rows for which a condition over both is true.
   *
   * @param alias the name of the table in the condition
   * @param sql the condition as the user wrote it
   */
  def on(condition: Expression, alias: Option[String], sql: String): Replaced = {
    val target = alias.fold(named)(SubqueryAlias(_, columns))
    val analyzer = spark.sessionState.analyzer
    val analyzed = analyzer.execute(Join(target, query, Inner, Some(condition), JoinHint.NONE))
    analyzer.checkAnalysis(analyzed)
    analyzed match {
      case Join(left, right, _, Some(resolved), _)
          if resolved.deterministic && !SubqueryExpression.hasSubquery(resolved) =>
        val old = AttributeMap(left.output.zip(present))
        val added = AttributeMap(right.output.zip(names).flatMap { case (column, name) =>
          relation.output.find(_.name == name).map(column -> _.newInstance())
        })
        val over = resolved.transformUp {
          case column: Attribute if old.contains(column) => old(column)
          case column: Attribute if added.contains(column) => added(column)
        }
        Replaced.Matching(over, AttributeSet(added.values.toSeq), "replaceOnCond" -> sql)
      case _ =>
        throw ReplaceWhere.refused(
          table.log.table.toString,
          sql,
          "it is not deterministic, or it has a subquery"
        )
    }
  }

  /** The table's columns for the analysis of a condition; its rows are not read. */
  private def columns: LogicalPlan = LocalRelation(present)

  private def named: LogicalPlan = (relation.catalog, relation.identifier) match {
    case (Some(catalog), Some(identifier)) =>
      val qualifier = catalog.name +: identifier.namespace.toSeq
      SubqueryAlias(qualifier :+ identifier.name, columns)
    case _ => columns
  }

  private def isSame(left: String, right: String): Boolean =
    spark.sessionState.conf.resolver(left, right)

  private def missing(column: String): DeltaicThrowable = DeltaicException(
    "DELTAIC_COLUMN_NOT_FOUND",
    Map(
      "table" -> table.log.table.toString,
      "column" -> column,
      "columns" -> names.mkString(", ")
    )
  )
}
