package org.apache.spark.sql.deltaic.merge

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.expressions.codegen.{
  Block,
  CodeGenerator,
  CodegenContext,
  EmptyBlock,
  ExprCode,
  ExprValue,
  FalseLiteral
}
import org.apache.spark.sql.catalyst.expressions.{Expression, Predicate}
import org.apache.spark.sql.catalyst.plans.logical.{AnalysisHelper, Filter, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.metric.{SQLLastAttemptMetric, SQLLastAttemptMetrics}
import org.apache.spark.sql.types.DataType

/** Counts rows that pass a point in a plan; rows of rerun tasks are counted once. */
final class RowCounter private (val metric: SQLLastAttemptMetric) extends Serializable {

  /** On the driver, after the plan has run. If Spark cannot identify rerun tasks, all their rows are counted. */
  def value: Long = metric.lastAttemptValueForHighestRDDId().getOrElse(metric.value).max(0L)

  def add(): Unit = metric.add(1L)

  /** How long it took to store the counted rows, if they are stored; only on the driver. */
  @transient @volatile var storingTimeMs: Long = 0L
}

object RowCounter {
  def apply(spark: SparkSession, name: String): RowCounter =
    new RowCounter(SQLLastAttemptMetrics.createMetric(spark.sparkContext, name))
}

object CountedRows {

  /** Removes the counter, for rows that are read again for another purpose. */
  def uncounted(rows: LogicalPlan): LogicalPlan =
    AnalysisHelper.allowInvokingTransformsInAnalyzer {
      rows.transform { case Filter(_: CountedRows, counted) => counted }
    }
}

/**
 * A column of the table that the condition of a MERGE equates with an expression over its source.
 *
 * @param column an expression over the table's columns, on the driver alone
 * @param values the values of the expression in the rows of the source
 */
final class CollectedKey(@transient val column: Expression, val values: CollectedKeys)
    extends Serializable

/**
 * True for every row, and counts it. It is non-deterministic, so that the optimizer does not move it.
 *
 * @param keys expressions whose values are collected
 * @param seen the collectors of these values, in the same order
 */
final case class CountedRows(
    counter: RowCounter,
    keys: Seq[Expression] = Nil,
    seen: Seq[CollectedKey] = Nil
) extends Predicate {
  override lazy val deterministic: Boolean = false
  override def children: Seq[Expression] = keys
  override def foldable: Boolean = false
  override def nullable: Boolean = false
  override def toString: String = "counted"

  override def eval(input: InternalRow): Any = {
    counter.add()
    keys.zip(seen).foreach { case (key, found) => found.values.add(key.eval(input)) }
    true
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val counted = ctx.addReferenceObj("rowCounter", counter)
    val collected = keys.zip(seen).map { case (key, found) =>
      val value = key.genCode(ctx)
      val values = ctx.addReferenceObj("collectedKeys", found.values)
      code"""
        ${value.code}
        if (!${value.isNull}) {
          $values.add((Object) ${boxed(key.dataType, value.value)});
        }"""
    }.foldLeft(EmptyBlock: Block)(_ + _)
    ev.copy(
      code = code"""
        $counted.add();
        $collected
        boolean ${ev.value} = true;
      """,
      isNull = FalseLiteral
    )
  }

  private def boxed(dataType: DataType, value: ExprValue): String =
    if (CodeGenerator.isPrimitiveType(dataType))
      s"${CodeGenerator.boxedType(dataType)}.valueOf($value)"
    else value.toString

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]
  ): CountedRows = copy(keys = newChildren)
}
