package io.deltaic.spark.sql.command

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryCommand}
import org.apache.spark.sql.execution.command.UnaryRunnableCommand
import org.apache.spark.sql.{Row, SparkSession, classic}

import io.deltaic.replay.DeltaLog
import io.deltaic.spark.commit.CommandRequest
import io.deltaic.spark.vacuum.{ShownFiles, VacuumRequest}

/**
 * VACUUM: Python executes it.
 *
 * @param child the table: a [[TableAtPath]], or one to be resolved by its name
 * @param arguments besides the table
 */
private[spark] final case class VacuumCommand(
    child: LogicalPlan,
    arguments: Map[String, Any],
    override val output: Seq[Attribute]
) extends UnaryRunnableCommand {

  override def run(session: SparkSession): Seq[Row] = {
    val spark = session.asInstanceOf[classic.SparkSession]
    val log = CommandTarget.of(spark, child, "VACUUM").log
    VacuumCommand.run(spark, log, arguments)
    Seq(Row(log.table.toString))
  }

  override protected def withNewChildInternal(newChild: LogicalPlan): VacuumCommand =
    copy(child = newChild)
}

/**
 * VACUUM with DRY RUN: Python checks the arguments. The files are found here, since they may be too many to send, and
 * too many for the rows of a [[org.apache.spark.sql.execution.command.RunnableCommand]], which are in memory.
 */
private[spark] final case class VacuumDryRun(
    child: LogicalPlan,
    arguments: Map[String, Any],
    override val output: Seq[Attribute]
) extends UnaryCommand {

  def find(spark: classic.SparkSession): ShownFiles = {
    val log = CommandTarget.of(spark, child, "VACUUM").log
    val request = VacuumCommand.run(spark, log, arguments).required("shownFiles")
    VacuumRequest.of(request.asInstanceOf[ObjectNode]).find(spark, log).shown
  }

  override protected def withNewChildInternal(newChild: LogicalPlan): VacuumDryRun =
    copy(child = newChild)
}

private[spark] object VacuumCommand {

  def of(table: LogicalPlan, arguments: Map[String, Any]): LogicalPlan = {
    val all = Map[String, Any]("isLite" -> false, "dryRun" -> false) ++ arguments
    val output = ResultRows.output("vacuum")
    if (all("dryRun").toString.toBoolean) VacuumDryRun(table, all, output)
    else VacuumCommand(table, all, output)
  }

  private[command] def run(
      spark: classic.SparkSession,
      log: DeltaLog,
      arguments: Map[String, Any]
  ): ObjectNode = {
    val all = ("table" -> log.table.toString) +: arguments.toSeq
    CommandRequest("vacuum", all).result(spark, "VacuumResult")
  }
}
