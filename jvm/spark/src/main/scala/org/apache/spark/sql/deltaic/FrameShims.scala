package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias}
import org.apache.spark.sql.classic.{DataFrame, Dataset}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** Spark numbers DataFrames, and a column that is taken from one carries its number. */
object FrameShims {

  /** The frame that a column was taken from, if Spark keeps these apart. */
  def numberIn(column: Attribute): Option[Long] =
    Option.when(column.metadata.contains(Dataset.DATASET_ID_KEY))(
      column.metadata.getLong(Dataset.DATASET_ID_KEY)
    )

  /** The frames that this one is, under its aliases, but for that of a whole table. */
  def numbersOf(frame: DataFrame): Set[Long] = numbersOf(
    PaddingShims.withoutPadding(frame.logicalPlan)
  )

  private def numbersOf(plan: LogicalPlan): Set[Long] = plan match {
    case _: DataSourceV2Relation => Set.empty
    case alias: SubqueryAlias => tagged(alias) ++ numbersOf(alias.child)
    case other => tagged(other)
  }

  private def tagged(plan: LogicalPlan): Set[Long] =
    plan.getTagValue(Dataset.DATASET_ID_TAG).fold(Set.empty[Long])(_.toSet)
}
