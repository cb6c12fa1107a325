package io.deltaic.spark.sql.command

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.UnaryRunnableCommand
import org.apache.spark.sql.{Row, SparkSession, classic}

import io.deltaic.spark.commit.CommandRequest

/**
 * RESTORE and GENERATE: Python executes them, and calls the JVM for what they need of files.
 *
 * @param command the name of the Python command
 * @param child the table, to be resolved by its name
 * @param arguments besides the table
 */
private[spark] final case class CommandInPython(
    command: String,
    child: LogicalPlan,
    arguments: Map[String, Any],
    override val output: Seq[Attribute]
) extends UnaryRunnableCommand {

  override def run(session: SparkSession): Seq[Row] = {
    val spark = session.asInstanceOf[classic.SparkSession]
    val table = CommandTarget.of(spark, child, command).log.table.toString
    val rows = CommandRequest(command, ("table" -> table) +: arguments.toSeq).rows(spark)
    if (output.isEmpty) Nil else ResultRows.of(rows, output)
  }

  override protected def withNewChildInternal(newChild: LogicalPlan): CommandInPython =
    copy(child = newChild)
}

private[spark] object CommandInPython {

  def of(command: String, table: LogicalPlan, arguments: Map[String, Any]): CommandInPython =
    CommandInPython(command, table, arguments, ResultRows.output(command))
}
