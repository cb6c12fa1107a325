package io.deltaic.spark.sql.command

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.analysis.{
  CannotReplaceMissingTableException,
  ResolvedTable,
  TableAlreadyExistsException
}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog, TableInfo}
import org.apache.spark.sql.deltaic.SessionInternals
import org.apache.spark.sql.execution.command.UnaryRunnableCommand
import org.apache.spark.sql.{Row, SparkSession, classic}

import io.deltaic.protocol.DeltaicException
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.catalog.definition.TableCreation
import io.deltaic.spark.catalog.{
  AsOf,
  CreateStatement,
  DeltaTableCatalog,
  DeltaicTable,
  TableLocation,
  TimeTravel
}
import io.deltaic.spark.clone.TableClone
import io.deltaic.spark.commit.Message
import io.deltaic.spark.util.Json

/**
 * What a CLONE statement says.
 *
 * @param target the name of the clone
 * @param statement as for [[TableCreation]], or `REPLACE TABLE`
 * @param settings the properties of the clone and its location, as Spark passes them to a catalog
 * @param version of the source
 * @param timestamp of the source, in the session's time zone
 */
private[spark] final case class CloneRequest(
    target: Seq[String],
    isShallow: Boolean,
    statement: String = CreateStatement.Create,
    ifNotExists: Boolean = false,
    settings: Map[String, String] = Map.empty,
    version: Option[String] = None,
    timestamp: Option[String] = None
)

private[spark] object CloneRequest {

  /** @param body a record of this name */
  def of(spark: classic.SparkSession, body: ObjectNode): CloneRequest = {
    Message.checked("CloneRequest", body)
    def text(key: String) = Option(body.get(key)).filter(_.isTextual).map(_.textValue)
    val name = body.get("target").textValue
    val target =
      if (body.get("isPath").booleanValue) Seq(TableLocation.provider, name)
      else spark.sessionState.sqlParser.parseMultipartIdentifier(name)
    CloneRequest(
      target,
      body.get("isShallow").booleanValue,
      if (body.get("replaces").booleanValue) CreateStatement.CreateOrReplace
      else CreateStatement.Create,
      settings = Json.strings(body.get("properties")),
      version = text("version"),
      timestamp = text("timestamp")
    )
  }
}

/**
 * CLONE: Python executes it, and calls the JVM for files.
 *
 * @param child the source: a [[TableAtPath]], or a table to be resolved by its name
 */
private[spark] final case class CloneTable(
    child: LogicalPlan,
    request: CloneRequest,
    override val output: Seq[Attribute]
) extends UnaryRunnableCommand {
  import CloneTable._
  import request._

  override def run(session: SparkSession): Seq[Row] = {
    val spark = session.asInstanceOf[classic.SparkSession]
    SessionInternals.identify(spark, target) match {
      case (catalog: DeltaTableCatalog, identifier) =>
        if (isSkipped(catalog, identifier)) Nil else create(spark, identifier)
      case (other, identifier) =>
        throw DeltaicException(
          "DELTAIC_CLONE_CATALOG",
          Map("name" -> identifier.toString, "catalog" -> other.name)
        )
    }
  }

  /** Whether there is nothing to do. */
  private def isSkipped(catalog: DeltaTableCatalog, identifier: Identifier): Boolean = {
    val exists = catalog.tableExists(identifier)
    if (statement == CreateStatement.Replace && !exists)
      throw new CannotReplaceMissingTableException(identifier)
    if (statement == CreateStatement.Create && exists && !ifNotExists)
      throw new TableAlreadyExistsException(identifier)
    exists && ifNotExists
  }

  private def create(spark: classic.SparkSession, identifier: Identifier): Seq[Row] = {
    val source = find(spark)
    val info = new TableInfo.Builder()
      .withColumns(Array.empty)
      .withProperties((settings + (TableCatalog.PROP_PROVIDER -> TableLocation.provider)).asJava)
      .build()
    val rows = new TableCreation(spark, identifier, info, statement).cloneOf(
      Seq(
        "source" -> source.snapshot.table.toString,
        "sourceName" -> source.name,
        "sourceVersion" -> source.snapshot.version,
        "isShallow" -> isShallow
      ),
      if (isShallow) _ => false else TableClone.isCopy(source.snapshot)
    )
    if (output.isEmpty) Nil else ResultRows.of(rows, output)
  }

  private def find(spark: classic.SparkSession): Source = child match {
    case TableAtPath(path) =>
      val log = TableLocation.requireExists(spark, TableLocation.log(spark, path))
      Source(asOf(spark, log).getOrElse(log.latest()), ofPath(log))
    case resolved: ResolvedTable =>
      resolved.table match {
        case table: DeltaicTable =>
          val travelled = asOf(spark, table.log)
          if (travelled.isDefined && !table.followsNewVersions)
            throw TimeTravel.invalid(table.log, resolved.name, "specify one version of the source")
          val isNamed = TableLocation.pathOf(resolved.identifier).isEmpty
          val name = if (isNamed) resolved.name else ofPath(table.log)
          Source(travelled.getOrElse(table.snapshot), name)
        case _ =>
          throw DeltaicException(
            "DELTAIC_NAME_IS_NOT_A_TABLE",
            Map("name" -> resolved.name, "found" -> "a table of another format")
          )
      }
    case other => throw new IllegalStateException(s"CLONE of ${other.nodeName}")
  }

  private def ofPath(log: DeltaLog): String = s"${TableLocation.provider}.`${log.table}`"

  private def asOf(spark: classic.SparkSession, log: DeltaLog): Option[Snapshot] =
    version.map(TimeTravel.version(log, _))
      .orElse(timestamp.map(t => AsOf.Time(TimeTravel.parseTimestampMs(spark, log, t))))
      .map(TimeTravel.open(spark, log, _))

  override protected def withNewChildInternal(newChild: LogicalPlan): CloneTable =
    copy(child = newChild)
}

private[spark] object CloneTable {

  /** @param name as the history of the clone shows it */
  private final case class Source(snapshot: Snapshot, name: String)

  def of(source: LogicalPlan, request: CloneRequest): CloneTable =
    CloneTable(source, request, ResultRows.output("cloneTable"))
}
