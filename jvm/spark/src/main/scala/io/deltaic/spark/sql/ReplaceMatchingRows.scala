package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.catalog.{DeltaicTable, MatchingRows}
import io.deltaic.spark.write.{Replaced, WriteTargets}

/**
 * Plans `INSERT INTO t REPLACE USING (columns)` and `REPLACE ON condition`, which Spark refuses for tables
 * of connectors: an append whose target replaces the rows that go with a new one.
 */
private[spark] final case class ReplaceMatchingRows(spark: SparkSession)
    extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = plan.resolveOperatorsUp {
    case insert: InsertIntoStatement
        if insert.replaceCriteriaOpt.isDefined && insert.query.resolved =>
      insert.table match {
        case relation @ ExtractV2Table(table: DeltaicTable) =>
          planned(insert, relation, table, table)
        case _ => insert
      }
  }

  /**
   * The statement as an append to its target.
   *
   * @param relation the target, with the columns that it has afterwards
   * @param target the same, as the statement writes it so far
   */
  def planned(
      insert: InsertIntoStatement,
      relation: DataSourceV2Relation,
      table: DeltaicTable,
      target: WriteTargets
  ): InsertIntoStatement = {
    val replacing =
      target.writeTarget.copy(replacing = Some(matching(insert, relation, table)))
    insert.copy(
      table = relation.copy(table = target.forWriting(replacing)),
      replaceCriteriaOpt = None,
      overwrite = false
    )
  }

  private def matching(
      insert: InsertIntoStatement,
      relation: DataSourceV2Relation,
      table: DeltaicTable
  ): Replaced = {
    val rows = new MatchingRows(spark, table, relation, insert.query, insert.byName)
    insert.replaceCriteriaOpt.get match {
      case InsertReplaceUsing(columns) => rows.using(columns)
      case InsertReplaceOn(condition, alias) => rows.on(condition, alias, condition.sql)
    }
  }
}
