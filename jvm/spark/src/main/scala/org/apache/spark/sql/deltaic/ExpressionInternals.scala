package org.apache.spark.sql.deltaic

import org.apache.spark.api.python.PythonEvalType
import org.apache.spark.sql.Column
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  AttributeMap,
  BindReferences,
  Expression,
  SubqueryExpression
}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.catalyst.util.CharVarcharUtils
import org.apache.spark.sql.classic.{ExpressionUtils, SparkSession}
import org.apache.spark.sql.types.{DataType, StructType}

/** SQL expressions over the columns of a table, analyzed under the session's settings. */
object ExpressionInternals {

  /** How Spark evaluates a Python UDF on one row at a time, whose arguments it sends as batches of Arrow. */
  val PythonUdfOnArrow: Int = PythonEvalType.SQL_ARROW_BATCHED_UDF

  /** The expression as a Column, which is converted to the same expression. */
  def column(expression: Expression): Column = ExpressionUtils.column(expression)

  /** The columns, as attributes that expressions can refer to. */
  def attributes(schema: StructType): Seq[Attribute] =
    DataTypeUtils.toAttributes(CharVarcharUtils.replaceCharVarcharWithStringInSchema(schema))

  /**
   * A resolved expression that can be evaluated over rows, without a plan around it.
   *
   * @throws org.apache.spark.sql.AnalysisException if it cannot be resolved against the columns
   * @throws IllegalArgumentException if it needs more than one row: subqueries, aggregates, windows
   */
  def resolved(spark: SparkSession, sql: String, columns: Seq[Attribute]): Expression = {
    val parsed = spark.sessionState.sqlParser.parseExpression(sql)
    val analyzer = spark.sessionState.analyzer
    val analyzed = analyzer.execute(Project(Seq(Alias(parsed, "value")()), LocalRelation(columns)))
    analyzer.checkAnalysis(analyzed)
    valueIn(spark.sessionState.optimizer.FinishAnalysis(analyzed))
      .filterNot(SubqueryExpression.hasSubquery)
      .map(spelledAs(_, columns))
      .getOrElse(throw new IllegalArgumentException(s"$sql is not computed from one row alone"))
  }

  /** The SQL of an expression with a given type: a cast is added if its own type differs. */
  def typed(
      spark: SparkSession,
      sql: String,
      columns: Seq[Attribute],
      dataType: DataType
  ): String =
    if (DataType.equalsIgnoreNullability(resolved(spark, sql, columns).dataType, dataType)) sql
    else s"CAST(($sql) AS ${dataType.sql})"

  /** The expression with columns spelled as they are defined: Spark's analyzer preserves the user's letter case. */
  def spelledAs(expression: Expression, columns: Seq[Attribute]): Expression = {
    val defined = AttributeMap(columns.map(column => column -> column))
    expression.transformUp { case column: Attribute => defined.getOrElse(column, column) }
  }

  /** The expression over rows that are given by position. */
  def bound(expression: Expression, columns: Seq[Attribute]): Expression =
    BindReferences.bindReference(expression, columns)

  private def valueIn(plan: LogicalPlan): Option[Expression] = plan match {
    case Project(Seq(Alias(value, _)), _: LocalRelation) => Some(value)
    case Project(Seq(value: Attribute), _: LocalRelation) => Some(value)
    case _ => None
  }
}
