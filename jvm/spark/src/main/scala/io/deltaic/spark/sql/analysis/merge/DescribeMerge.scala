package io.deltaic.spark.sql.analysis.merge

import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  Cast,
  EvalMode,
  Expression,
  MetadataAttribute
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.merge.{
  CollectedKey,
  CollectedKeys,
  CountedRows,
  DeterminismCheck,
  RowCounter
}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.catalog.target.MergeTarget
import io.deltaic.spark.util.Json

/**
 * Records the operation parameters of a resolved MERGE for the history, since later plans no longer have its clauses,
 * and counts the rows of its source.
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
      () =>
        Map("numSourceRows" -> counter.value, "materializeSourceTimeMs" -> counter.storingTimeMs)
    )
    val pairs = collectedPairs(merge)
    val keys =
      pairs.map(pair => new CollectedKey(pair.own, CollectedKeys(spark, pair.own.dataType)))
    val counted = CountedRows(counter, pairs.map(_.other), keys)
    merge.withNewTable(relation.copy(table = table))
      .copy(sourceTable = Filter(counted, merge.sourceTable))
  }

  /**
   * The pairs that equate a column of the table with a value of the source. The values of the source's rows are
   * collected, so that rows that other commits add can be checked for them, even if the source is not repeatable.
   * Only expressions that cannot fail are evaluated, and no user-defined functions, since Spark
   * would call them a second time for the collected values, possibly with another result.
   */
  private def collectedPairs(merge: MergeIntoTable): Seq[KeyPair] =
    if (DeterminismCheck.callsUser(merge.sourceTable)) Nil
    else
      KeyPair.equated(merge.mergeCondition, merge.targetTable, merge.sourceTable)
        .map(_.narrowed).filter(pair => isPlain(pair.own) && isPlain(pair.other))

  private def isPlain(key: Expression): Boolean = key match {
    case column: Attribute =>
      CharVarcharUtils.getRawType(column.metadata).isEmpty &&
      !MetadataAttribute.isValid(column.metadata)
    case Cast(column: Attribute, wider, _, mode) =>
      isPlain(column) && (mode == EvalMode.TRY || Cast.canUpCast(column.dataType, wider))
    case _ => false
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
