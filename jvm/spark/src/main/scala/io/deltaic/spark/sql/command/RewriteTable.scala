package io.deltaic.spark.sql.command

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.UnaryRunnableCommand
import org.apache.spark.sql.{Row, SparkSession, classic}

import io.deltaic.spark.optimize.RewriteCommand
import io.deltaic.spark.util.Json

/**
 * OPTIMIZE and REORG. As a write, it runs in the JVM, and Python plans its commit.
 *
 * @param child the table: a [[TableAtPath]], or one to be resolved by its name
 */
private[spark] final case class RewriteTable(
    child: LogicalPlan,
    request: RewriteCommand,
    override val output: Seq[Attribute]
) extends UnaryRunnableCommand {

  override def run(session: SparkSession): Seq[Row] = {
    val spark = session.asInstanceOf[classic.SparkSession]
    val log = CommandTarget.of(spark, child, request.command).log
    val row = Map("path" -> log.table.toString, "metrics" -> request.run(spark, log))
    ResultRows.of(Json.of(Seq(row)).toString, output)
  }

  override protected def withNewChildInternal(newChild: LogicalPlan): RewriteTable =
    copy(child = newChild)
}

private[spark] object RewriteTable {

  def of(table: LogicalPlan, request: RewriteCommand): RewriteTable =
    RewriteTable(table, request, ResultRows.output("optimize"))
}
