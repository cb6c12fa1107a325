package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryCommand}

/**
 * A DELETE, UPDATE or MERGE that returns how many rows it changed, which Spark's commands do not.
 *
 * It is in a package of Spark: to find the user's call site for the UI, Spark skips only classes of
 * its own packages, and this class's methods are on the stack.
 *
 * @param child Spark's plan of the statement, or its result
 */
final case class AffectedRowsReport(child: LogicalPlan, override val output: Seq[Attribute])
    extends UnaryCommand {
  override protected def withNewChildInternal(newChild: LogicalPlan): AffectedRowsReport =
    copy(child = newChild)
}
