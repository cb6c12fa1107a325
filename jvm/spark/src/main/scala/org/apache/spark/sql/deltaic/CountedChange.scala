package org.apache.spark.sql.deltaic

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryCommand}

/**
 * A DELETE, UPDATE or MERGE that returns how many rows it changed, which Spark's own do not.
 *
 * It is in a package of Spark's: where Spark looks for the user's call that it names a statement by in
 * its UI, it passes over classes of its own packages alone, and this one's methods are on the stack.
 *
 * @param child the plan that Spark has made of the statement, or its result
 */
final case class CountedChange(child: LogicalPlan, override val output: Seq[Attribute])
    extends UnaryCommand {
  override protected def withNewChildInternal(newChild: LogicalPlan): CountedChange =
    copy(child = newChild)
}
