package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  AttributeReference,
  Expression,
  NamedExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.connector.catalog.{CatalogV2Util, Table}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.internal.SQLConf

/** CHAR columns: Spark pads their strings on read, since writers need not pad them. */
object PaddingInternals {

  /**
   * Columns of a table as a scan returns them, each with the expression that pads it. Spark does
   * not add the padding in streams. The padded column is a different attribute, otherwise Spark
   * would remove the padding as redundant.
   */
  def asRead(
      table: Table,
      columns: Seq[AttributeReference]
  ): Seq[(AttributeReference, Expression)] = {
    val conf = SQLConf.get
    val pads = conf.readSideCharPadding && !conf.charVarcharAsString
    columns.zip(declared(table, columns)).map { case (column, withLength) =>
      val stored = withLength.newInstance().asInstanceOf[AttributeReference]
      CharVarcharUtils.addPaddingForScan(stored) match {
        case padded if pads && padded != stored => (stored, padded)
        case _ => (column, column)
      }
    }
  }

  /**
   * The plan of a DataFrame without the padding, as in Spark's plans of statements that change a table; its columns
   * are unchanged.
   */
  def withoutPadding(plan: LogicalPlan): LogicalPlan = plan.transform {
    case Project(columns, relation: DataSourceV2Relation) if arePadded(columns, relation.output) =>
      val stored = declared(relation.table, relation.output)
      relation.copy(output = stored.zip(columns).map { case (column, read) =>
        column.withExprId(read.exprId)
      })
  }

  /** The columns with the lengths that the table declares, which Spark removes from columns that it pads. */
  private def declared(
      table: Table,
      columns: Seq[AttributeReference]
  ): Seq[AttributeReference] = {
    val schema = CharVarcharUtils.replaceCharVarcharWithStringInSchema(
      CatalogV2Util.v2ColumnsToStructType(table.columns)
    )
    val metadata = schema.fields.map(field => field.name -> field.metadata).toMap
    columns.map(column => metadata.get(column.name).fold(column)(column.withMetadata))
  }

  private def arePadded(columns: Seq[NamedExpression], stored: Seq[Attribute]): Boolean =
    columns.map(_.name) == stored.map(_.name) && columns.zip(stored).forall {
      case (Alias(padded, _), column) =>
        padded.references.forall(_.exprId == column.exprId) && pads(padded)
      case (same, column) => same.exprId == column.exprId
    }

  private def pads(expression: Expression): Boolean = expression.exists {
    case call: StaticInvoke => call.functionName == "readSidePadding"
    case _ => false
  }
}
