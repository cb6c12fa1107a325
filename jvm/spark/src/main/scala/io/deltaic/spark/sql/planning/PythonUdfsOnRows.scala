package io.deltaic.spark.sql.planning

import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.deltaic.ExpressionInternals
import org.apache.spark.sql.execution.python.ArrowEvalPythonExec
import org.apache.spark.sql.execution.{ColumnarRule, ColumnarToRowExec, SparkPlan}

import io.deltaic.spark.util.SparkVersions

/**
 * Has Python evaluate a UDF on rows where the scan below returns batches. Spark 4.2.0 sends the arguments of batches in
 * a form that its Python worker does not expect, and the task never ends (SPARK-58241, fixed in Spark 4.2.1). Tables of
 * other formats in the session are concerned, too.
 *
 * {{{
 * ArrowEvalPython [neg(id)]        ArrowEvalPython [neg(id)]
 * +- BatchScan (batches)     =>    +- ColumnarToRow
 *                                     +- BatchScan (batches)
 * }}}
 */
private[spark] object PythonUdfsOnRows extends ColumnarRule {

  /** Whether this version of Spark needs it. */
  def isNeeded(sparkVersion: String): Boolean = SparkVersions.release(sparkVersion) == "4.2.0"

  override def preColumnarTransitions: Rule[SparkPlan] = OnRows

  private object OnRows extends Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan = plan.transformUp {
      case udfs: ArrowEvalPythonExec
          if udfs.evalType == ExpressionInternals.PythonUdfOnArrow && udfs.child.supportsColumnar =>
        udfs.copy(child = ColumnarToRowExec(udfs.child))
    }
  }
}
