package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf

/** CHAR columns: Spark pads their texts where they are read, since writers need not have done so. */
object PaddingShims {

  /** A column as it is to be read; Spark does not see to it in streams. */
  def asRead(column: Attribute): Expression = {
    val conf = SQLConf.get
    if (conf.readSideCharPadding && !conf.charVarcharAsString)
      CharVarcharUtils.addPaddingForScan(column)
    else column
  }

  /** The plan of a DataFrame without the padding, as Spark has it in statements that change a table. */
  def withoutPadding(plan: LogicalPlan): LogicalPlan = plan.transform {
    case Project(columns, relation: DataSourceV2Relation) if arePadded(columns, relation.output) =>
      relation.copy(output = relation.output.zip(columns).map { case (column, padded) =>
        column.withMetadata(padded.metadata)
      })
  }

  private def arePadded(columns: Seq[NamedExpression], stored: Seq[Attribute]): Boolean =
    columns.map(_.name) == stored.map(_.name) && columns.zip(stored).forall {
      case (padded: Alias, column) =>
        padded.references.toSeq == Seq(column) &&
        CharVarcharUtils.getRawType(padded.metadata).isDefined
      case (same, column) => same == column
    }
}
