package io.deltaic.spark

import java.util.{Locale, Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.connector.catalog.{Table, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.deltaic.{SchemaShims, SessionShims}
import org.apache.spark.sql.execution.datasources.DataSourceUtils
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}
import org.apache.spark.sql.internal.SQLConf.PartitionOverwriteMode
import org.apache.spark.sql.sources.{BaseRelation, CreatableRelationProvider, DataSourceRegister}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.sql.{DataFrame => ApiDataFrame, SQLContext, SaveMode}

import io.deltaic.protocol.DeltaicException
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.bridge.Json
import io.deltaic.spark.catalog._
import io.deltaic.spark.write.{ReadOnlyOptions, WriteIntent, WriteTarget, WriteTransaction}

/**
 * `spark.read.format("delta").load(path)` and `df.write.format("delta").save(path)`.
 *
 * Reading is DataSource V2. Saving enters by the older interface, since V2 without a catalog cannot
 * create a table at a path, and goes on as a V2 plan.
 */
class DeltaicDataSource extends TableProvider with CreatableRelationProvider
    with DataSourceRegister {

  override def shortName(): String = TableLocation.provider

  /** The log knows the schema; see [[getTable]]. */
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = new StructType()

  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: JMap[String, String]
  ): Table = {
    val options = new CaseInsensitiveStringMap(properties)
    val spark = SparkSession.active
    val found = TableLocation.find(spark, options)
    val log = found.log
    if (!log.exists) new AbsentTable(spark, log)
    else {
      val table = TimeTravel.of(spark, found, options) match {
        case Some(asOf) =>
          val snapshot = TimeTravel.open(spark, log, asOf)
          new DeltaicTable(spark, log, snapshot, TableOrigin.TimeTravel)
        case None => new DeltaicTable(spark, log, log.latest(), TableOrigin.Path)
      }
      if (ChangeFeedOptions.areIn(options)) table.changes(options) else table
    }
  }

  override def createRelation(
      sqlContext: SQLContext,
      mode: SaveMode,
      parameters: Map[String, String],
      data: ApiDataFrame
  ): BaseRelation = {
    val spark = SparkSession.active
    val found = TableLocation.find(spark, new CaseInsensitiveStringMap(parameters.asJava))
    val log = found.log
    ReadOnlyOptions.refuse(log.table.toString, parameters.keys)
    if (found.suffix.isDefined)
      throw ReadOnlyOptions.refusal(log.table.toString, s"path ${parameters("path")}")
    // Asked once: whether a table that appears later is a conflict is decided when this commits.
    val snapshot = Option.when(log.exists)(log.latest())
    mode match {
      case SaveMode.Ignore if snapshot.isDefined => ()
      case SaveMode.ErrorIfExists if snapshot.isDefined =>
        throw new DeltaicException(
          "DELTAIC_TABLE_ALREADY_EXISTS",
          Map("table" -> log.table.toString)
        )
      case _ =>
        val save = new Save(spark, log, snapshot, mode, parameters, data.asInstanceOf[DataFrame])
        SessionShims.run(spark, save.plan)
    }
    SavedRelation(sqlContext, data.schema)
  }
}

/** What Spark wants back from a save; nobody reads it. */
private final case class SavedRelation(override val sqlContext: SQLContext, schema: StructType)
    extends BaseRelation

/** The V2 plan of one `df.write.save(path)`. */
private final class Save(
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Option[Snapshot],
    mode: SaveMode,
    parameters: Map[String, String],
    data: DataFrame
) {
  private val options = parameters.map { case (k, v) => k.toLowerCase(Locale.ROOT) -> v }

  private val partitionBy: Option[Seq[String]] = parameters
    .get(DataSourceUtils.PARTITIONING_COLUMNS_KEY)
    .map(DataSourceUtils.decodePartitioningColumns)

  def plan: LogicalPlan = {
    if (parameters.contains(DataSourceUtils.CLUSTERING_COLUMNS_KEY))
      throw WriteTransaction.unsupported(log.table.toString, "clusterBy of a DataFrame writer")
    val relation = DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty())
    if (overwritesPartitions && mode == SaveMode.Overwrite && flag("overwriteschema"))
      throw WriteTransaction.unsupported(
        log.table.toString,
        "overwriteSchema=true with partitionOverwriteMode=dynamic, which would keep files of the old columns,"
      )
    val query = data.queryExecution.analyzed.transformWithSubqueries(readsOfThisVersion)
    if (mode != SaveMode.Overwrite) AppendData.byName(relation, query)
    else if (overwritesPartitions) OverwritePartitionsDynamic.byName(relation, query)
    else OverwriteByExpression.byName(relation, query, Literal.TrueLiteral)
  }

  /** The query reads the version that the write is based on, even if the table grows meanwhile. */
  private def readsOfThisVersion: PartialFunction[LogicalPlan, LogicalPlan] = {
    case relation @ ExtractV2Table(table: DeltaicTable)
        if snapshot.isDefined && table.log.table == log.table =>
      relation.copy(table = table.pinnedTo(snapshot.get))
  }

  /** Whether an overwrite replaces only those partitions it has rows for; the option beats the session. */
  private def overwritesPartitions: Boolean = {
    val overwriteMode = options.getOrElse(
      DataSourceUtils.PARTITION_OVERWRITE_MODE.toLowerCase(Locale.ROOT),
      spark.sessionState.conf.partitionOverwriteMode.toString
    )
    overwriteMode.equalsIgnoreCase(PartitionOverwriteMode.DYNAMIC.toString)
  }

  private def table: Table = {
    val current = snapshot.map(new DeltaicTable(spark, log, _, TableOrigin.Path))
    val kept = current.filterNot(_ => mode == SaveMode.Overwrite && flag("overwriteschema"))
    kept.foreach(_.requireCanCompute())
    val partitionColumns =
      kept.map(_.tableSchema.partitionColumns).orElse(partitionBy).getOrElse(Nil)
    val target = WriteTarget(spark, log, snapshot, partitionColumns, intent)
    new WriteOnlyTable(
      target,
      kept.fold(columnsOfRows)(_.tableSchema.all),
      kept.fold(Map.empty[String, String])(_.generatedColumns),
      kept.toSeq.flatMap(_.identityColumns)
    )
  }

  private def intent: WriteIntent = WriteIntent(
    operation = "WRITE",
    operationParameters = Map(
      "mode" -> mode.toString,
      "partitionBy" -> Json.of(partitionBy.getOrElse(Nil)).toString
    ),
    mode = if (mode == SaveMode.Overwrite) "overwrite" else "append",
    schema = Some(columnsOfRows),
    partitionBy = partitionBy,
    properties = tableProperties,
    options = options - DataSourceUtils.PARTITIONING_COLUMNS_KEY - "path",
    joinsIfCreated = mode == SaveMode.Append
  )

  private def columnsOfRows: StructType =
    ColumnDefinitions.ofRows(SchemaShims.asNullable(data.schema))

  /** Options that name table properties; their spelling matters, so they keep their case. */
  private def tableProperties: Map[String, String] = {
    val asSpelled = parameters match {
      case ignoringCase: CaseInsensitiveMap[String @unchecked] => ignoringCase.originalMap
      case plain => plain
    }
    asSpelled.filter { case (key, _) => key.toLowerCase(Locale.ROOT).startsWith("delta.") }
  }

  private def flag(option: String): Boolean =
    options.get(option).exists(_.equalsIgnoreCase("true"))
}
