package io.deltaic.spark.sql.analysis

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.catalog.target.MatchingRows
import io.deltaic.spark.write.{ReplaceWhere, Replaced, WriteTargets}

/**
 * Plans `INSERT INTO t REPLACE USING (columns)` and `REPLACE ON condition`, which Spark refuses for V2
 * tables, as an append whose target replaces the rows that match a new one.
 */
private[spark] final case class ReplaceMatchingRows(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case insert: InsertIntoStatement
        if ReplaceMatchingRows.isOn(insert) && insert.query.resolved =>
      insert.table match {
        case relation @ ExtractV2Table(table: DeltaicTable) =>
          planned(insert, relation, table, table)
        case _ => insert
      }
  }

  /**
   * The statement as an append to its target.
   *
   * @param relation the target, with its columns after the statement
   * @param target the same, with the write target so far
   */
  def planned(
      insert: InsertIntoStatement,
      relation: DataSourceV2Relation,
      table: DeltaicTable,
      target: WriteTargets
  ): InsertIntoStatement = {
    val replacing =
      target.writeTarget.copy(replacing = matching(insert, relation, table))
    insert.copy(
      table = relation.copy(table = target.forWriting(replacing)),
      replaceCriteriaOpt = None,
      overwrite = false
    )
  }

  /**
   * The same for `insertInto` with mode overwrite and the corresponding options; none for another overwrite.
   *
   * @param rows of the DataFrame, under its own column names
   */
  def planned(
      overwrite: OverwriteByExpression,
      rows: LogicalPlan,
      table: DeltaicTable
  ): Option[V2WriteCommand] = overwrite.table match {
    case relation @ ExtractV2Table(target: WriteTargets)
        if overwrite.deleteExpr == Literal.TrueLiteral =>
      val options = CaseInsensitiveMap(overwrite.writeOptions)
      val matching = new MatchingRows(spark, table, relation, rows, byName = false)
      val replaced = options.get(ReplaceWhere.OnKey).map { text =>
        val condition = ReplaceWhere.parse(spark, table.log.table.toString, text)
        matching.on(condition, options.get(ReplaceWhere.AliasKey), text)
      }.orElse(options.get(ReplaceWhere.UsingKey).map { text =>
        matching.using(text.split(",").toSeq.map(_.trim))
      })
      replaced.map { _ =>
        val replacing = target.writeTarget.copy(replacing = replaced)
        AppendData.byPosition(
          relation.copy(table = target.forWriting(replacing)),
          overwrite.query,
          overwrite.writeOptions
        )
      }
    case _ => None
  }

  private def matching(
      insert: InsertIntoStatement,
      relation: DataSourceV2Relation,
      table: DeltaicTable
  ): Option[Replaced] = {
    val rows = new MatchingRows(spark, table, relation, insert.query, insert.byName)
    insert.replaceCriteriaOpt.collect {
      case InsertReplaceUsing(columns) => rows.using(columns)
      case InsertReplaceOn(condition, alias) => rows.on(condition, alias, condition.sql)
    }
  }
}

private[spark] object ReplaceMatchingRows {

  /** Whether it is such a statement. From Spark 4.3 on, REPLACE WHERE has criteria, too, and is planned by Spark. */
  def isOn(insert: InsertIntoStatement): Boolean = insert.replaceCriteriaOpt.exists {
    case _: InsertReplaceUsing | _: InsertReplaceOn => true
    case _ => false
  }
}
