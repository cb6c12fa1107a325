package io.deltaic.spark.catalog.target

import java.util.Locale

import org.apache.spark.sql.SaveMode
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal}
import org.apache.spark.sql.catalyst.parser.CatalystSqlParser
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{SupportsV1OverwriteWithSaveAsTable, Table}
import org.apache.spark.sql.deltaic.{SchemaInternals, WriteCommandInternals}
import org.apache.spark.sql.execution.datasources.DataSourceUtils
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, ExtractV2Table}
import org.apache.spark.sql.internal.SQLConf.PartitionOverwriteMode
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.catalog.definition.ColumnDefinitions
import io.deltaic.spark.catalog.{CreateStatement, DeltaicTable, TableVersion, WriteOnlyTable}
import io.deltaic.spark.commit.{OperationInfo, RequestedDefinition}
import io.deltaic.spark.rowlevel.RowReplacement
import io.deltaic.spark.util.{Json, UnsupportedOperation}
import io.deltaic.spark.write.{
  PartitionOverwrite,
  PropertyOptions,
  ReplaceWhere,
  Replaced,
  WriteFlags,
  WriteIntent,
  WriteTarget,
  WriteTargets
}

/**
 * The V2 plan of one `df.write.save(path)`, of a `saveAsTable` that overwrites a table, or of a batch of a stream.
 *
 * @param parameters the writer's options, `partitionBy` among them
 * @param query analyzed
 */
private[spark] final class PathWrite(
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Option[Snapshot],
    mode: SaveMode,
    parameters: Map[String, String],
    query: LogicalPlan,
    statement: SaveStatement = SaveStatement.ToPath
) {
  private val options = parameters.map { case (k, v) => k.toLowerCase(Locale.ROOT) -> v }

  /** As the rows spell them. The write refuses a column that they do not have. */
  private val partitionBy: Option[Seq[String]] = options
    .get(DataSourceUtils.PARTITIONING_COLUMNS_KEY)
    .map { names =>
      val columns = query.output.map(_.name)
      DataSourceUtils.decodePartitioningColumns(names).map { name =>
        if (columns.contains(name)) name
        else columns.find(_.equalsIgnoreCase(name)).getOrElse(name)
      }
    }

  private val clusterBy: Option[Seq[Seq[String]]] = options
    .get(DataSourceUtils.CLUSTERING_COLUMNS_KEY)
    .map(
      DataSourceUtils.decodePartitioningColumns(_).map(CatalystSqlParser.parseMultipartIdentifier)
    )

  /** A condition retains rows, and so the columns of the table. */
  private def replacesColumns: Boolean = mode == SaveMode.Overwrite &&
    WriteFlags.of(WriteFlags.OverwriteSchema, options.get).contains(true) &&
    !ReplaceWhere.Keys.exists(option(_).isDefined)

  /** The table, if this write leaves its columns in place. */
  private val tableKeepingColumns: Option[DeltaicTable] = snapshot
    .map(latest => new DeltaicTable(spark, TableVersion.ofPath(log, latest)))
    .filterNot(_ => replacesColumns)

  private val condition: Option[Expression] =
    option(ReplaceWhere.Key).map { text =>
      tableKeepingColumns.foreach(_.requireExtension(ReplaceWhere.Key))
      if (mode != SaveMode.Overwrite)
        throw ReplaceWhere.refused(log.table.toString, text, "it requires mode overwrite")
      ReplaceWhere.parse(spark, log.table.toString, text)
    }.filterNot(_ == Literal.TrueLiteral)

  def plan: LogicalPlan = {
    WriteFlags.requireValid(options.get)
    for (before <- snapshot; columns <- clusterBy) KeptClustering.require(before, columns)
    // A table that will have no partitions is overwritten as a whole.
    if (overwritesPartitions && replacesColumns && partitionBy.exists(_.nonEmpty))
      throw UnsupportedOperation(
        log.table.toString,
        "overwriteSchema=true with partitionOverwriteMode=dynamic, which would keep files of the old columns,"
      )
    tableKeepingColumns.foreach(_.requireCanCompute())
    tableKeepingColumns.foreach { table =>
      PartialRows.refuse(table, evolved.getOrElse(table.tableSchema.all), query.schema)
    }
    val relation = DataSourceV2Relation.create(table, None, None, CaseInsensitiveStringMap.empty())
    val rows = query.transformWithSubqueries(readsOfThisVersion)
    val matching = tableKeepingColumns.flatMap(matchingRows(_, relation, rows))
    val write =
      if (matching.isDefined) AppendData.byName(replacing(relation, matching), rows, writeOptions)
      else if (mode != SaveMode.Overwrite) AppendData.byName(relation, rows, writeOptions)
      else if (option(ReplaceWhere.Key).isEmpty && overwritesPartitions)
        OverwritePartitionsDynamic.byName(relation, rows, writeOptions)
      else {
        val deleted = condition.getOrElse(Literal.TrueLiteral)
        OverwriteByExpression.byName(relation, rows, deleted, writeOptions)
      }
    if (tableKeepingColumns.isEmpty) write
    else WriteCommandInternals.withResolvedOutput(spark, write, mayLackFields = true)
  }

  /** The rows to replace because they match a new one. */
  private def matchingRows(
      table: DeltaicTable,
      relation: DataSourceV2Relation,
      rows: LogicalPlan
  ): Option[Replaced] = if (mode != SaveMode.Overwrite || condition.isDefined) None
  else {
    lazy val matching = new MatchingRows(spark, table, relation, rows, byName = true)
    val on = option(ReplaceWhere.OnKey).map { text =>
      val parsed = ReplaceWhere.parse(spark, log.table.toString, text)
      matching.on(parsed, option(ReplaceWhere.AliasKey), text)
    }
    on.orElse(option(ReplaceWhere.UsingKey).map { text =>
      matching.using(text.split(",").toSeq.map(_.trim))
    })
  }

  private def replacing(
      relation: DataSourceV2Relation,
      replaced: Option[Replaced]
  ): DataSourceV2Relation = relation.table match {
    case table: WriteTargets =>
      relation.copy(table = table.forWriting(table.writeTarget.copy(replacing = replaced)))
    case _ => relation
  }

  private def option(name: String): Option[String] = options.get(name.toLowerCase(Locale.ROOT))

  /** The query reads the version that the write is based on, even if there are commits meanwhile. */
  private def readsOfThisVersion: PartialFunction[LogicalPlan, LogicalPlan] = {
    case relation @ ExtractV2Table(table: DeltaicTable)
        if snapshot.isDefined && table.log.table == log.table =>
      relation.copy(table = table.pinnedTo(snapshot.get))
  }

  /** Whether an overwrite replaces only the partitions it has rows for; the option takes precedence over the session. */
  private def overwritesPartitions: Boolean =
    PartitionOverwrite.isDynamic(options.get).getOrElse {
      spark.sessionState.conf.partitionOverwriteMode == PartitionOverwriteMode.DYNAMIC
    }

  /** The columns of an existing table with new ones of the rows added. */
  private lazy val evolved: Option[StructType] = tableKeepingColumns.flatMap { table =>
    val rows = RowsToWrite(columnsOfRows, byName = true)
    WrittenColumns.evolved(table, rows, Evolution.of(spark, options.get(_)))
  }

  private def table: Table = {
    val partitionColumns =
      tableKeepingColumns.map(_.tableSchema.partitionColumns).orElse(partitionBy).getOrElse(Nil)
    val target = WriteTarget(spark, log, snapshot, partitionColumns, intent, RowReplacement)
    tableKeepingColumns.fold(new WriteOnlyTable(target, columnsOfRows)) { table =>
      table.forWriting(target.copy(intent = target.intent.copy(evolved = evolved)))
    }
  }

  private def intent: WriteIntent = WriteIntent(
    OperationInfo(
      statement.operation,
      statement.parameters(mode, partitionBy.getOrElse(Nil), tableKeepingColumns)
    ),
    mode = if (mode == SaveMode.Overwrite) "overwrite" else "append",
    RequestedDefinition(
      schema = Some(columnsOfRows),
      partitionBy = partitionBy.getOrElse(Nil),
      clusterBy = if (snapshot.isEmpty) clusterBy else None,
      properties = PropertyOptions.of(parameters)
    ),
    appendsIfCreatedConcurrently = mode == SaveMode.Append,
    keepsDefinition = true
  )

  private def writeOptions: Map[String, String] = {
    val writerOptions = options - DataSourceUtils.PARTITIONING_COLUMNS_KEY -
      DataSourceUtils.CLUSTERING_COLUMNS_KEY - "path" - SupportsV1OverwriteWithSaveAsTable.OPTION_NAME
    // A condition that is always true is no condition, and a new table has no rows to match; columns that are
    // retained are not overwritten.
    val matchingOptions = Seq(ReplaceWhere.OnKey, ReplaceWhere.UsingKey)
    val ineffective =
      (if (condition.isDefined) Nil else Seq(ReplaceWhere.Key)) ++
        (if (tableKeepingColumns.isDefined) Seq(WriteFlags.OverwriteSchema) else matchingOptions)
    writerOptions -- ineffective.map(_.toLowerCase(Locale.ROOT))
  }

  private def columnsOfRows: StructType =
    ColumnDefinitions.ofRows(SchemaInternals.asNullable(query.schema))
}

/** How the history names a save. */
private[spark] sealed trait SaveStatement {
  def operation: String

  /** @param kept the table, if its definition is retained */
  def parameters(
      mode: SaveMode,
      partitionBy: Seq[String],
      tableKeepingColumns: Option[DeltaicTable]
  ): Map[String, String]
}

private[spark] object SaveStatement {

  case object ToPath extends SaveStatement {
    override val operation: String = "WRITE"
    override def parameters(
        mode: SaveMode,
        partitionBy: Seq[String],
        tableKeepingColumns: Option[DeltaicTable]
    ): Map[String, String] =
      Map("mode" -> mode.toString, "partitionBy" -> Json.of(partitionBy).toString)
  }

  /** One batch of a stream. Its parameters are those of delta-spark, which calls the batch an epoch. */
  final case class StreamingUpdate(outputMode: String, queryId: String, batchId: Long)
      extends SaveStatement {
    override val operation: String = "STREAMING UPDATE"
    override def parameters(
        mode: SaveMode,
        partitionBy: Seq[String],
        tableKeepingColumns: Option[DeltaicTable]
    ): Map[String, String] =
      Map("outputMode" -> outputMode, "queryId" -> queryId, "epochId" -> batchId.toString)
  }

  /** `saveAsTable` with mode overwrite, which Spark plans as a statement that replaces the table. */
  final case class ToTable(isManaged: Boolean) extends SaveStatement {
    override val operation: String = s"${CreateStatement.CreateOrReplace} AS SELECT"
    override def parameters(
        mode: SaveMode,
        partitionBy: Seq[String],
        tableKeepingColumns: Option[DeltaicTable]
    ): Map[String, String] = {
      val columns = tableKeepingColumns.fold(partitionBy)(_.tableSchema.partitionColumns)
      val properties =
        tableKeepingColumns.fold(Map.empty[String, String])(_.snapshot.metadata.configuration)
      Map(
        "isManaged" -> isManaged.toString,
        "partitionBy" -> Json.of(columns).toString,
        "properties" -> Json.of(properties).toString
      )
    }
  }
}
