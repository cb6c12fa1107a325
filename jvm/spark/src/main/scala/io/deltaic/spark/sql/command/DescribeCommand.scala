package io.deltaic.spark.sql.command

import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.analysis.UnresolvedTable
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.deltaic.SessionInternals
import org.apache.spark.sql.execution.command.UnaryRunnableCommand
import org.apache.spark.sql.{Row, SparkSession, classic}

import io.deltaic.spark.catalog.{DeltaTableCatalog, TableLocation}
import io.deltaic.spark.commit.CommandRequest
import io.deltaic.spark.util.Json

/** The table at a path, which is loaded when the command runs. */
private[spark] final case class TableAtPath(path: String) extends LeafNode {
  override def output: Seq[Attribute] = Nil
}

/**
 * A table by its name, for a statement that also supports tables that cannot be read. These have no columns, which
 * Spark requires to resolve a name. So the table is loaded when the command runs.
 *
 * @param command the name of the statement in errors
 */
private[spark] final case class TableToDescribe(name: Seq[String], command: String)
    extends LeafNode {
  override def output: Seq[Attribute] = Nil

  /** The table as Spark resolves it, or its location if it cannot be read. */
  def found(spark: classic.SparkSession): Either[UnreadableTable, LogicalPlan] =
    try Right(SessionInternals.analyzed(spark, UnresolvedTable(name, command)))
    catch { case NonFatal(e) => Left(locate(spark).getOrElse(throw e)) }

  /** The location of the table, whether or not it can be read. */
  def locate(spark: classic.SparkSession): Option[UnreadableTable] =
    SessionInternals.identify(spark, name) match {
      case (catalog: DeltaTableCatalog, identifier) =>
        catalog.existing(identifier).map { table =>
          val full = catalog.name +: identifier.namespace.toSeq :+ identifier.name
          val isNamed = TableLocation.pathOf(identifier).isEmpty
          UnreadableTable(
            table.log.table.toString,
            Option.when(isNamed)(full.map(quoteIfNeeded).mkString("."))
          )
        }
      case _ => None
    }
}

/** @param name in the catalog, if it was found there */
private[spark] final case class UnreadableTable(path: String, name: Option[String])

/**
 * A statement that describes one table. Python executes it, except for [[DescribeNonDeltaDetail]]. Its result rows have
 * the columns of `command-results.json`.
 *
 * @param command the name of the Python command
 * @param child the table: a [[TableAtPath]], or one to be resolved by its name
 * @param arguments besides the table
 */
private[spark] final case class DescribeCommand(
    command: String,
    child: LogicalPlan,
    arguments: Map[String, Any],
    override val output: Seq[Attribute]
) extends UnaryRunnableCommand {

  override def run(session: SparkSession): Seq[Row] = {
    val spark = session.asInstanceOf[classic.SparkSession]
    child match {
      case described: TableToDescribe =>
        described.found(spark) match {
          case Right(table) => runOn(spark, table)
          case Left(UnreadableTable(path, name)) => runInPython(spark, path, name)
        }
      case table => runOn(spark, table)
    }
  }

  private def runOn(spark: classic.SparkSession, table: LogicalPlan): Seq[Row] = {
    val nonDelta =
      if (command == DescribeCommand.Detail) DescribeNonDeltaDetail.of(spark, table) else None
    nonDelta.fold(describe(spark, table)) { detail =>
      ResultRows.of(Json.of(Seq(detail)).toString, output)
    }
  }

  private def describe(spark: classic.SparkSession, table: LogicalPlan): Seq[Row] = {
    val target = CommandTarget.of(spark, table, command)
    runInPython(spark, target.log.table.toString, target.name)
  }

  /** @param name in the catalog, which only a detail has */
  private def runInPython(
      spark: classic.SparkSession,
      path: String,
      name: Option[String]
  ): Seq[Row] = {
    val named = Option.when(command == DescribeCommand.Detail)("name" -> name)
    val all = Seq("table" -> path) ++ named ++ arguments
    ResultRows.of(CommandRequest(command, all).rows(spark), output)
  }

  override protected def withNewChildInternal(newChild: LogicalPlan): DescribeCommand =
    copy(child = newChild)
}

private[spark] object DescribeCommand {
  val Detail = "describeDetail"
  val History = "describeHistory"

  def of(command: String, table: LogicalPlan, arguments: Map[String, Any]): DescribeCommand =
    DescribeCommand(command, table, arguments, ResultRows.output(command))
}
