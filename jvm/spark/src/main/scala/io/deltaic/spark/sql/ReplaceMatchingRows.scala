package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.write.{ReplaceWhere, Replaced, WriteTransaction}

/**
 * Plans `INSERT INTO t REPLACE USING (columns)` and `REPLACE ON condition`, which Spark refuses for tables
 * of connectors: an append whose target replaces the rows that go with a new one.
 *
 * The condition is told of the new rows as they are in the table: by then their query may give others.
 */
private[spark] final case class ReplaceMatchingRows(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case insert: InsertIntoStatement
        if insert.replaceCriteriaOpt.isDefined && insert.query.resolved =>
      insert.table match {
        case relation @ DataSourceV2Relation(table: DeltaicTable, _, _, _, _, _) =>
          val target = table.writeTarget.copy(replacing = Some(matching(insert, relation, table)))
          insert.copy(
            table = relation.copy(table = table.forWriting(target)),
            replaceCriteriaOpt = None,
            overwrite = false
          )
        case _ => insert
      }
  }

  private def matching(
      insert: InsertIntoStatement,
      relation: DataSourceV2Relation,
      table: DeltaicTable
  ): Replaced = {
    if (insert.withSchemaEvolution)
      throw WriteTransaction.unsupported(
        table.log.table.toString,
        "WITH SCHEMA EVOLUTION of REPLACE ON and REPLACE USING"
      )
    val names = namesOfNewRows(insert, relation)
    insert.replaceCriteriaOpt.get match {
      case InsertReplaceUsing(columns) => using(columns, names, relation, table)
      case InsertReplaceOn(condition, alias) =>
        on(condition, alias, names, insert.query, relation, table)
    }
  }

  private def using(
      columns: Seq[String],
      names: Seq[String],
      relation: DataSourceV2Relation,
      table: DeltaicTable
  ): Replaced = {
    val pairs = columns.map { column =>
      val own = relation.output.find(c => isSame(c.name, column) && names.contains(c.name))
        .getOrElse(throw missing(table, relation, column))
      own -> own.newInstance()
    }
    val equal: Seq[Expression] = pairs.map { case (old, added) => EqualTo(old, added) }
    Replaced.Matching(equal.reduce(And(_, _)), AttributeSet(pairs.map(_._2)))
  }

  private def on(
      condition: Expression,
      alias: Option[String],
      names: Seq[String],
      query: LogicalPlan,
      relation: DataSourceV2Relation,
      table: DeltaicTable
  ): Replaced = {
    val target = alias.fold[LogicalPlan](named(relation))(SubqueryAlias(_, relation))
    val analyzer = spark.sessionState.analyzer
    val analyzed = analyzer.execute(Join(target, query, Inner, Some(condition), JoinHint.NONE))
    analyzer.checkAnalysis(analyzed)
    analyzed match {
      case Join(left, right, _, Some(resolved), _)
          if resolved.deterministic && !SubqueryExpression.hasSubquery(resolved) =>
        val old = AttributeMap(left.output.zip(relation.output))
        val added = AttributeMap(right.output.zip(names).flatMap { case (column, name) =>
          relation.output.find(_.name == name).map(column -> _.newInstance())
        })
        val over = resolved.transformUp {
          case column: Attribute if old.contains(column) => old(column)
          case column: Attribute if added.contains(column) => added(column)
        }
        Replaced.Matching(over, AttributeSet(added.values.toSeq))
      case _ =>
        throw ReplaceWhere.refused(
          table.log.table.toString,
          condition.sql,
          "it is no deterministic condition without subqueries"
        )
    }
  }

  /** The table's column that each column of the query goes to. */
  private def namesOfNewRows(
      insert: InsertIntoStatement,
      relation: DataSourceV2Relation
  ): Seq[String] =
    if (!insert.byName) relation.output.map(_.name).take(insert.query.output.length)
    else
      insert.query.output.map { column =>
        relation.output.map(_.name).find(isSame(_, column.name)).getOrElse(column.name)
      }

  private def named(relation: DataSourceV2Relation): LogicalPlan =
    (relation.catalog, relation.identifier) match {
      case (Some(catalog), Some(identifier)) =>
        val qualifier = catalog.name +: identifier.namespace.toSeq
        SubqueryAlias(qualifier :+ identifier.name, relation)
      case _ => relation
    }

  private def isSame(left: String, right: String): Boolean =
    spark.sessionState.conf.resolver(left, right)

  private def missing(
      table: DeltaicTable,
      relation: DataSourceV2Relation,
      column: String
  ): DeltaicException = new DeltaicException(
    "DELTAIC_COLUMN_NOT_FOUND",
    Map(
      "table" -> table.log.table.toString,
      "column" -> column,
      "columns" -> relation.output.map(_.name).mkString(", ")
    )
  )
}
