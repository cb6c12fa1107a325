package org.apache.spark.sql.deltaic.scan

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.connector.read.streaming.SparkDataStream
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.{
  CodegenSupport,
  SparkPlan,
  StreamSourceAwareSparkPlan,
  UnaryExecNode
}

/** Counts the rows that a micro-batch reads from a stream, for its progress report. */
case class StreamedRowsExec(child: SparkPlan, @transient stream: SparkDataStream)
    extends UnaryExecNode
    with CodegenSupport
    with StreamSourceAwareSparkPlan {

  private val numRows = "numOutputRows"

  override lazy val metrics: Map[String, SQLMetric] =
    Map(numRows -> SQLMetrics.createMetric(sparkContext, "number of output rows"))

  override def getStream: Option[SparkDataStream] = Some(stream)

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = child.outputPartitioning

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override protected def doExecute(): RDD[InternalRow] = {
    val counter = longMetric(numRows)
    child.execute().mapPartitionsInternal { rows =>
      rows.map { row =>
        counter += 1
        row
      }
    }
  }

  override def inputRDDs(): Seq[RDD[InternalRow]] =
    child.asInstanceOf[CodegenSupport].inputRDDs()

  override protected def doProduce(context: CodegenContext): String =
    child.asInstanceOf[CodegenSupport].produce(context, this)

  override def usedInputs: AttributeSet = AttributeSet.empty

  override def doConsume(context: CodegenContext, input: Seq[ExprCode], row: ExprCode): String =
    s"""
       |${metricTerm(context, numRows)}.add(1);
       |${consume(context, input)}
     """.stripMargin

  override protected def withNewChildInternal(newChild: SparkPlan): StreamedRowsExec =
    copy(child = newChild)
}
