package io.deltaic.spark.sql

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{CountedRows, RowCounter}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.bridge.Json
import io.deltaic.spark.catalog.{DeltaicTable, MergeTarget}

/**
 * Lets a resolved MERGE say in the history what it was: later plans of it no longer tell its clauses,
 * and nothing counts the rows of its source.
 *
 * {{{
 *   MergeIntoTable         =>     MergeIntoTable
 *   :- t                          :- t, described
 *   +- source                     +- Filter [counted]
 *                                    +- source
 * }}}
 */
private[sql] object DescribeMerge {

  def apply(spark: SparkSession, merge: MergeIntoTable): MergeIntoTable =
    EliminateSubqueryAliases(merge.targetTable) match {
      case relation @ ExtractV2Table(table: DeltaicTable) =>
        described(spark, merge, relation, new MergeTarget(table))
      case relation @ ExtractV2Table(table: MergeTarget) =>
        described(spark, merge, relation, table)
      case _ => merge
    }

  private def described(
      spark: SparkSession,
      merge: MergeIntoTable,
      relation: DataSourceV2Relation,
      target: MergeTarget
  ): MergeIntoTable = {
    val counter = RowCounter(spark, "rows of the source of a MERGE")
    val table = target.described(
      Map(
        "predicate" -> Json.of(Seq(merge.mergeCondition.sql)).toString,
        "matchedPredicates" -> clauses(merge.matchedActions),
        "notMatchedPredicates" -> clauses(merge.notMatchedActions),
        "notMatchedBySourcePredicates" -> clauses(merge.notMatchedBySourceActions)
      ),
      () => Map("numSourceRows" -> counter.value)
    )
    merge.withNewTable(relation.copy(table = table))
      .copy(sourceTable = Filter(CountedRows(counter), merge.sourceTable))
  }

  /** As delta-spark records them: what each clause does, and when. */
  private def clauses(actions: Seq[MergeAction]): String = {
    val all = actions.map { action =>
      val kind = action match {
        case _: DeleteAction => "delete"
        case _: InsertAction | _: InsertStarAction => "insert"
        case _ => "update"
      }
      val when = action.condition.map((condition: Expression) => "predicate" -> condition.sql)
      Json.obj(when.toSeq :+ ("actionType" -> kind): _*)
    }
    Json.of(all).toString
  }
}
