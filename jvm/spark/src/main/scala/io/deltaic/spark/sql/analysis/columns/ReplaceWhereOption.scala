package io.deltaic.spark.sql.analysis.columns

import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.spark.catalog.DeltaicTable
import io.deltaic.spark.write.ReplaceWhere

/** Applies the option `replaceWhere` of `insertInto`, which overwrites the rows that satisfy the condition. */
private[sql] object ReplaceWhereOption {

  def applied(spark: SparkSession, write: V2WriteCommand, table: DeltaicTable): V2WriteCommand =
    write match {
      case overwrite: OverwriteByExpression
          if !overwrite.isByName && overwrite.deleteExpr == Literal.TrueLiteral =>
        condition(spark, table, overwrite.writeOptions)
          .fold[V2WriteCommand](overwrite)(replacing(overwrite, _))
      case overwrite: OverwritePartitionsDynamic if !overwrite.isByName =>
        condition(spark, table, overwrite.writeOptions).fold[V2WriteCommand](overwrite) { rows =>
          val all = OverwriteByExpression(
            overwrite.table,
            rows,
            overwrite.query,
            overwrite.writeOptions,
            overwrite.isByName,
            overwrite.withSchemaEvolution
          )
          replacing(all, rows)
        }
      case other => other
    }

  /** A condition that is always true is not a condition. */
  private def replacing(write: OverwriteByExpression, rows: Expression): OverwriteByExpression =
    if (rows != Literal.TrueLiteral) write.copy(deleteExpr = rows)
    else {
      val others = write.writeOptions.filterNot(_._1.equalsIgnoreCase(ReplaceWhere.Key))
      write.copy(deleteExpr = rows, writeOptions = others)
    }

  private def condition(
      spark: SparkSession,
      table: DeltaicTable,
      options: Map[String, String]
  ): Option[Expression] =
    CaseInsensitiveMap(options).get(ReplaceWhere.Key)
      .map(ReplaceWhere.parse(spark, table.log.table.toString, _))
}
