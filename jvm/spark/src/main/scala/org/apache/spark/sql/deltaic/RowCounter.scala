package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.{LeafExpression, Predicate}
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, Filter, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.metric.{SQLLastAttemptMetric, SQLLastAttemptMetrics}

/** Counts rows that pass a place in a plan; those of tasks that run again count once. */
final class RowCounter private (val metric: SQLLastAttemptMetric) extends Serializable {

  /** On the driver, once the plan has run. Where Spark cannot say what ran again, all count. */
  def value: Long = metric.lastAttemptValueForHighestRDDId().getOrElse(metric.value).max(0L)

  def add(): Unit = metric.add(1L)
}

object RowCounter {
  def apply(spark: SparkSession, name: String): RowCounter =
    new RowCounter(SQLLastAttemptMetrics.createMetric(spark.sparkContext, name))
}

object CountedRows {

  /** Rows that are read again, for another purpose, do not count. */
  def uncounted(rows: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      rows.transform { case Filter(_: CountedRows, counted) => counted }
    }
}

/** True for every row, and counts it. The optimizer is to leave it where it is, so it is not deterministic. */
final case class CountedRows(counter: RowCounter) extends LeafExpression with Predicate {
  override lazy val deterministic: Boolean = false
  override def foldable: Boolean = false
  override def nullable: Boolean = false
  override def toString: String = "counted"

  override def eval(input: InternalRow): Any = {
    counter.add()
    true
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val counted = ctx.addReferenceObj("rowCounter", counter)
    ev.copy(
      code = code"""
        $counted.add();
        boolean ${ev.value} = true;
      """,
      isNull = FalseLiteral
    )
  }
}
