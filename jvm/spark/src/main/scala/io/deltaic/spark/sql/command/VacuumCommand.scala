package io.deltaic.spark.sql.command

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.command.UnaryRunnableCommand
import org.apache.spark.sql.{Row, SparkSession, classic}

import io.deltaic.spark.commit.CommandRequest
import io.deltaic.spark.vacuum.VacuumRequest

/**
 * VACUUM: Python executes it. The files that a DRY RUN shows are found here, since they may be too many to send.
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
    val all = ("table" -> log.table.toString) +: VacuumCommand.complete(arguments)
    CommandRequest("vacuum", all).result(spark, "VacuumResult").get("shownFiles") match {
      case request: ObjectNode =>
        val run = VacuumRequest.of(request).find(spark, log)
        try run.shown.map(Row(_)).toVector
        finally run.close()
      case _ => Seq(Row(log.table.toString))
    }
  }

  override protected def withNewChildInternal(newChild: LogicalPlan): VacuumCommand =
    copy(child = newChild)
}

private[spark] object VacuumCommand {

  def of(table: LogicalPlan, arguments: Map[String, Any]): VacuumCommand =
    VacuumCommand(table, arguments, ResultRows.output("vacuum"))

  private def complete(arguments: Map[String, Any]): Seq[(String, Any)] =
    (Map[String, Any]("isLite" -> false, "dryRun" -> false) ++ arguments).toSeq
}
