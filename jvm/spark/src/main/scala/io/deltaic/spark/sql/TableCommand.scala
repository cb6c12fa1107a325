package io.deltaic.spark.sql

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.CatalystTypeConverters
import org.apache.spark.sql.catalyst.analysis.{ResolvedTable, UnresolvedTable}
import org.apache.spark.sql.catalyst.expressions.{Attribute, JsonToStructs, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.{fromAttributes, toAttributes}
import org.apache.spark.sql.catalyst.util.quoteIfNeeded
import org.apache.spark.sql.deltaic.SessionShims
import org.apache.spark.sql.execution.command.UnaryRunnableCommand
import org.apache.spark.sql.types.{ArrayType, StructType}
import org.apache.spark.sql.{Row, SparkSession, classic}

import io.deltaic.protocol.{DeltaicException, SharedResource}
import io.deltaic.spark.DeltaicCatalog
import io.deltaic.spark.bridge.{CommitterReply, Committers, Json}
import io.deltaic.spark.catalog.{DeltaicTable, TableLocation}

/** The table at a path, which is looked for when the command runs. */
private[spark] final case class TableAtPath(path: String) extends LeafNode {
  override def output: Seq[Attribute] = Nil
}

/**
 * A table by its name, for a statement that answers for tables that cannot be read: these have no columns, which
 * Spark asks for where it resolves names. So it is looked up when the command runs.
 *
 * @param command what errors call the statement
 */
private[spark] final case class TableToDescribe(name: Seq[String], command: String)
    extends LeafNode {
  override def output: Seq[Attribute] = Nil

  /** The table as Spark resolves it, or where it is if it cannot be read. */
  def found(spark: classic.SparkSession): Either[UnreadTable, LogicalPlan] =
    try Right(SessionShims.analysed(spark, UnresolvedTable(name, command)))
    catch { case NonFatal(e) => Left(unread(spark).getOrElse(throw e)) }

  /** Where the table is, whether or not it can be read. */
  def unread(spark: classic.SparkSession): Option[UnreadTable] =
    SessionShims.identify(spark, name) match {
      case (catalog: DeltaicCatalog, identifier) =>
        catalog.existing(identifier).map { table =>
          val full = catalog.name +: identifier.namespace.toSeq :+ identifier.name
          val isNamed = TableLocation.pathOf(identifier).isEmpty
          UnreadTable(
            table.log.table.toString,
            Option.when(isNamed)(full.map(quoteIfNeeded).mkString("."))
          )
        }
      case _ => None
    }
}

/** @param name in the catalog, if it was found there */
private[spark] final case class UnreadTable(path: String, name: Option[String])

/**
 * A statement on one table that Python carries out, but for [[DetailOfOthers]]. Its rows, if it has
 * any, have the columns of `command-results.json`.
 *
 * @param command the name Python knows it by
 * @param child the table: a [[TableAtPath]], or one to be resolved by its name
 * @param arguments those beside the table, as [[Json.of]] takes them
 */
private[spark] final case class TableCommand(
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
          case Left(UnreadTable(path, name)) =>
            runInPython(spark, Map("table" -> path, "name" -> name))
        }
      case table => runOn(spark, table)
    }
  }

  private def runOn(spark: classic.SparkSession, table: LogicalPlan): Seq[Row] = {
    val ofOthers =
      if (command == TableCommand.DescribeDetail) DetailOfOthers.of(spark, table) else None
    ofOthers.fold(runInPython(spark, target(spark, table))) { detail =>
      rows(Json.of(Seq(detail)).toString)
    }
  }

  private def runInPython(spark: classic.SparkSession, target: Map[String, Any]): Seq[Row] = {
    val request = Json.obj((target ++ arguments).toSeq: _*)
    val committer = Committers.current(spark)
    val reply = CommitterReply.require(committer.run(spark, command, request.toString))
    if (output.isEmpty) Nil else rows(reply.get("rows").toString)
  }

  private def target(spark: classic.SparkSession, table: LogicalPlan): Map[String, Any] =
    table match {
      case TableAtPath(path) =>
        val log = TableLocation.requireExists(spark, TableLocation.log(spark, path))
        Map("table" -> log.table.toString)
      case resolved @ ResolvedTable(_, identifier, table: DeltaicTable, _)
          if table.followsNewVersions =>
        val name = Option.when(TableLocation.pathOf(identifier).isEmpty)(resolved.name)
        Map("table" -> table.log.table.toString, "name" -> name)
      case resolved: ResolvedTable =>
        val found = resolved.table match {
          case older: DeltaicTable => s"version ${older.snapshot.version} of ${older.log.table}"
          case _ => "a table of another format"
        }
        throw DeltaicException(
          "DELTAIC_NAME_IS_NOT_A_TABLE",
          Map("name" -> resolved.name, "found" -> found)
        )
      case other => throw new IllegalStateException(s"$command of ${other.nodeName}")
    }

  /** Times are written with their zone, so that of the session changes nothing. */
  private def rows(json: String): Seq[Row] = {
    val schema = ArrayType(fromAttributes(output))
    val parsed = JsonToStructs(schema, Map("mode" -> "FAILFAST"), Literal(json), Some("UTC")).eval()
    CatalystTypeConverters.convertToScala(
      parsed,
      schema
    ).asInstanceOf[scala.collection.Seq[Row]].toSeq
  }

  override protected def withNewChildInternal(newChild: LogicalPlan): TableCommand =
    copy(child = newChild)
}

private[spark] object TableCommand {
  val DescribeDetail = "describeDetail"

  private lazy val columns: Map[String, StructType] =
    SharedResource.json("command-results.json").properties().asScala.map { entry =>
      val fields = entry.getValue.elements().asScala.map(_.asText)
      entry.getKey -> StructType.fromDDL(fields.mkString(", "))
    }.toMap

  def of(command: String, table: LogicalPlan, arguments: Map[String, Any]): TableCommand =
    TableCommand(
      command,
      table,
      arguments,
      toAttributes(columns.getOrElse(command, new StructType()))
    )
}
