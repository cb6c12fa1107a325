package io.deltaic.spark

import java.util.{Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.connector.catalog.{SupportsV1OverwriteWithSaveAsTable, Table}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.sources.{
  BaseRelation,
  CreatableRelationProvider,
  DataSourceRegister,
  StreamSinkProvider
}
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.types.{DataType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.sql.{DataFrame => ApiDataFrame, SQLContext, SaveMode}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.target.PathWrite
import io.deltaic.spark.catalog.{
  AbsentTable,
  ChangeFeedOptions,
  DeltaicTable,
  LocatedTable,
  TableLocation,
  TablePartition,
  TableVersion,
  TimeTravel
}
import io.deltaic.spark.stream.{PathSink, TableSink}
import io.deltaic.spark.write.ReadOnlyOptions

/**
 * `spark.read.format("delta").load(path)` and `df.write.format("delta").save(path)`.
 *
 * Reads use DataSource V2. Writes enter through the V1 interface, since V2 without a catalog cannot
 * create a table at a path, and continue as a V2 plan.
 */
class DeltaicDataSource extends SupportsV1OverwriteWithSaveAsTable with CreatableRelationProvider
    with StreamSinkProvider with DataSourceRegister {

  override def shortName(): String = TableLocation.provider

  /** The schema is read from the log; see [[getTable]]. */
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = new StructType()

  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: JMap[String, String]
  ): Table = {
    val options = new CaseInsensitiveStringMap(properties)
    val spark = SparkSession.active
    val found = TableLocation.find(spark, options)
    if (found.log.exists) tableOf(spark, found, options, None)
    else
      TableLocation.partition(spark, options)
        .map { case (table, path) => tableOf(spark, table, options, Some(path)) }
        .getOrElse(new AbsentTable(spark, found.log))
  }

  /** @param partition the path of the partition that is to be read */
  private def tableOf(
      spark: SparkSession,
      found: LocatedTable,
      options: CaseInsensitiveStringMap,
      partition: Option[Path]
  ): Table = {
    val log = found.log
    val version = TimeTravel.of(spark, found, options) match {
      case Some(asOf) => TableVersion.timeTravel(log, TimeTravel.open(spark, log, asOf))
      case None => TableVersion.ofPath(log, log.latest())
    }
    val within = partition.map(TablePartition.of(spark, _, version.snapshot))
    within.foreach(_.requireFiles(log, version.snapshot))
    val table = new DeltaicTable(spark, version, within = within)
    if (ChangeFeedOptions.areIn(options)) table.changesToStream(options) else table
  }

  /** The commit checks the types of columns. Spark would reject variants here. */
  override def supportsDataType(dataType: DataType): Boolean = true

  override def createRelation(
      sqlContext: SQLContext,
      mode: SaveMode,
      parameters: Map[String, String],
      data: ApiDataFrame
  ): BaseRelation = {
    val spark = SparkSession.active
    val found = TableLocation.find(spark, new CaseInsensitiveStringMap(parameters.asJava))
    val log = found.log
    requireNewest(found, parameters)
    // Loaded once: the commit decides whether a table created later is a conflict.
    val snapshot = Option.when(log.exists)(log.latest())
    mode match {
      case SaveMode.Ignore if snapshot.isDefined => ()
      case SaveMode.ErrorIfExists if snapshot.isDefined =>
        throw DeltaicException(
          "DELTAIC_TABLE_ALREADY_EXISTS",
          Map("table" -> log.table.toString)
        )
      case _ =>
        val query = data.asInstanceOf[DataFrame].queryExecution.analyzed
        JobInternals.calledAs(spark, s"save to ${log.table}") {
          SessionInternals.run(
            spark,
            new PathWrite(spark, log, snapshot, mode, parameters, query).plan
          )
        }
    }
    SavedRelation(sqlContext, data.schema)
  }

  /** `df.writeStream.start(path)`; see [[io.deltaic.spark.sql.analysis.stream.ResolveStreamingWrites]]. */
  override def createSink(
      sqlContext: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode
  ): Sink = {
    val spark = SparkSession.active
    val found = TableLocation.find(spark, new CaseInsensitiveStringMap(parameters.asJava))
    requireNewest(found, parameters)
    val table = found.log.table.toString
    TableSink.requireAllowed(table, parameters)
    val layout = TableSink.layout(partitionColumns, parameters)
    new PathSink(new TableSink(spark, found.log, layout = layout))
  }

  private def requireNewest(found: LocatedTable, parameters: Map[String, String]): Unit = {
    val table = found.log.table.toString
    ReadOnlyOptions.refuse(table, parameters.keys)
    if (found.suffix.isDefined)
      throw ReadOnlyOptions.refusal(table, s"path ${parameters("path")}")
  }
}

/** The relation that Spark requires as the result of a save; it is not used. */
private final case class SavedRelation(override val sqlContext: SQLContext, schema: StructType)
    extends BaseRelation
