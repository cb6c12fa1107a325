package org.apache.spark.sql.deltaic

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

/** Counts rows that pass a place in a plan; those of tasks that run again count once. */
final class RowCounter private (val metric: SQLLastAttemptMetric) extends Serializable {

  /** On the driver, once the plan has run. Where Spark cannot say what ran again, all count. */
  def value: Long = metric.lastAttemptValueForHighestRDDId().getOrElse(metric.value).max(0L)

  def add(): Unit = metric.add(1L)

  /** How long it took to store the rows that are counted, if they are stored; known to the driver. */
  @transient @volatile var storingTimeMs: Long = 0L
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

/**
 * A column of the table that a change equates with something of its source.
 *
 * @param column an expression over the table's columns, on the driver alone
 * @param values those that rows of the source had
 */
final class SeenKey(@transient val column: Expression, val values: SeenValues)
    extends Serializable

/**
 * True for every row, and counts it. The optimizer is to leave it where it is, so it is not deterministic.
 *
 * @param keys of the row, whose values are remembered
 * @param seen where, in the same order
 */
final case class CountedRows(
    counter: RowCounter,
    keys: Seq[Expression] = Nil,
    seen: Seq[SeenKey] = Nil
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
    val remembered = keys.zip(seen).map { case (key, found) =>
      val value = key.genCode(ctx)
      val values = ctx.addReferenceObj("seenValues", found.values)
      code"""
        ${value.code}
        if (!${value.isNull}) {
          $values.add((Object) ${boxed(key.dataType, value.value)});
        }"""
    }.foldLeft(EmptyBlock: Block)(_ + _)
    ev.copy(
      code = code"""
        $counted.add();
        $remembered
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
