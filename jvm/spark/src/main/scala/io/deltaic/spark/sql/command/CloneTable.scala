package io.deltaic.spark.sql.command

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.analysis.{
  CannotReplaceMissingTableException,
  ResolvedTable,
  TableAlreadyExistsException
}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog, TableInfo}
import org.apache.spark.sql.deltaic.{SchemaInternals, SessionInternals}
import org.apache.spark.sql.execution.command.UnaryRunnableCommand
import org.apache.spark.sql.{Row, SparkSession, classic}

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
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
import io.deltaic.spark.convert.{ConversionError, ConversionTarget}
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
    of(
      spark,
      body.get("target").textValue,
      body.get("isPath").booleanValue,
      body.get("isShallow").booleanValue,
      body.get("replaces").booleanValue,
      Json.strings(body.get("properties")),
      text("version"),
      text("timestamp")
    )
  }

  /** The request of a method of `DeltaTable`. */
  def of(
      spark: classic.SparkSession,
      target: String,
      isPath: Boolean,
      isShallow: Boolean,
      replaces: Boolean,
      properties: Map[String, String],
      version: Option[String],
      timestamp: Option[String]
  ): CloneRequest = CloneRequest(
    if (isPath) Seq(TableLocation.provider, target)
    else spark.sessionState.sqlParser.parseMultipartIdentifier(target),
    isShallow,
    if (replaces) CreateStatement.CreateOrReplace else CreateStatement.Create,
    settings = properties,
    version = version,
    timestamp = timestamp
  )
}

/**
 * Parquet files that are found when the command runs.
 *
 * @param name their format and path
 */
private[spark] final case class ParquetByPath(name: Seq[String]) extends LeafNode {
  override def output: Seq[Attribute] = Nil
}

/**
 * CLONE: Python executes it, and calls the JVM for files.
 *
 * @param child the source: a [[TableAtPath]], [[ParquetByPath]], or a table to be resolved by its name
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
        if (isSkipped(catalog, identifier)) Nil
        else
          try create(spark, identifier)
          catch {
            // Another statement has created the table since.
            case e: DeltaicThrowable
                if ifNotExists && e.condition == CreatedConcurrently &&
                catalog.tableExists(identifier) =>
              Nil
          }
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
      source.arguments :+ ("isShallow" -> isShallow),
      if (isShallow) _ => false else source.isCopy
    )
    if (output.isEmpty) Nil else ResultRows.of(rows, output)
  }

  private def find(spark: classic.SparkSession): Source = child match {
    case TableAtPath(path) =>
      val log = TableLocation.requireExists(spark, TableLocation.log(spark, path))
      VersionToClone(asOf(spark, log).getOrElse(log.latest()), ofPath(log))
    case ParquetByPath(name) => parquet(spark, name)
    case resolved: ResolvedTable =>
      resolved.table match {
        case table: DeltaicTable =>
          val travelled = asOf(spark, table.log)
          if (travelled.isDefined && !table.followsNewVersions)
            throw TimeTravel.invalid(table.log, resolved.name, "specify one version of the source")
          val isNamed = TableLocation.pathOf(resolved.identifier).isEmpty
          val name = if (isNamed) resolved.name else ofPath(table.log)
          VersionToClone(travelled.getOrElse(table.snapshot), name)
        case other =>
          val entry = SchemaInternals.listed(other).getOrElse {
            throw DeltaicException(
              "DELTAIC_NAME_IS_NOT_A_TABLE",
              Map("name" -> resolved.name, "found" -> "a table of another format")
            )
          }
          parquet(spark, entry.identifier.nameParts)
      }
    case other => throw new IllegalStateException(s"CLONE of ${other.nodeName}")
  }

  private def parquet(spark: classic.SparkSession, name: Seq[String]): ParquetToClone = {
    val target = ConversionTarget.of(spark, name)
    val log = TableLocation.log(spark, target.location)
    if (target.isDelta || log.exists)
      throw ConversionError.source(
        ConversionTarget.quoted(name),
        s"it is a Delta table already, which is cloned as ${ofPath(log)}"
      )
    if (version.isDefined || timestamp.isDefined)
      throw DeltaicException(
        "DELTAIC_CLONE_INVALID",
        Map("reason" -> s"${log.table} has Parquet files, of which there is only one version")
      )
    ParquetToClone(target, log.table)
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

  private val CreatedConcurrently = "DELTAIC_TABLE_CREATED_CONCURRENTLY"

  /** In the history, the version of a source without versions. */
  private val NoVersion = -1L

  private sealed trait Source {

    /** What Python is told of it. */
    def arguments: Seq[(String, Any)]

    /** Whether a file in the directory of a deep clone is a copy of one of its files. */
    def isCopy: Path => Boolean
  }

  /** @param name as the history of the clone shows it */
  private final case class VersionToClone(snapshot: Snapshot, name: String) extends Source {

    override def arguments: Seq[(String, Any)] = Seq(
      "source" -> snapshot.table.toString,
      "sourceName" -> name,
      "sourceVersion" -> snapshot.version
    )

    override def isCopy: Path => Boolean = TableClone.isCopy(snapshot)
  }

  private final case class ParquetToClone(target: ConversionTarget, folder: Path) extends Source {

    override def arguments: Seq[(String, Any)] = Seq(
      "source" -> folder.toString,
      "sourceName" -> target.name.getOrElse(s"parquet.`$folder`"),
      "sourceVersion" -> NoVersion,
      "parquet" -> target.entryMessage
    )

    override def isCopy: Path => Boolean = TableClone.isCopyOfParquet(folder)
  }

  def of(source: LogicalPlan, request: CloneRequest): CloneTable =
    CloneTable(source, request, ResultRows.output("cloneTable"))
}
