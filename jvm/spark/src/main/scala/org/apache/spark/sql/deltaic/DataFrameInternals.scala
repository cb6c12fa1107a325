package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias}
import org.apache.spark.sql.classic.{DataFrame, Dataset}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/** Spark numbers DataFrames, and a column of a DataFrame is tagged with its number. */
object DataFrameInternals {

  /** The number of the DataFrame that a column was taken from, if Spark tags columns. */
  def idIn(column: Attribute): Option[Long] =
    Option.when(column.metadata.contains(Dataset.DATASET_ID_KEY))(
      column.metadata.getLong(Dataset.DATASET_ID_KEY)
    )

  /** The numbers of this DataFrame and its aliases, except that of a whole table. */
  def idsOf(df: DataFrame): Set[Long] = idsOf(
    PaddingInternals.withoutPadding(df.logicalPlan)
  )

  private def idsOf(plan: LogicalPlan): Set[Long] = plan match {
    case _: DataSourceV2Relation => Set.empty
    case alias: SubqueryAlias => tagged(alias) ++ idsOf(alias.child)
    case other => tagged(other)
  }

  private def tagged(plan: LogicalPlan): Set[Long] =
    plan.getTagValue(Dataset.DATASET_ID_TAG).fold(Set.empty[Long])(_.toSet)
}
