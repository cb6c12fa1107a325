package io.deltaic.spark

import java.util.{Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.{DataFrame, SparkSession}
import org.apache.spark.sql.connector.catalog.{SupportsV1OverwriteWithSaveAsTable, Table}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.deltaic.{JobShims, SessionShims}
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
import io.deltaic.spark.catalog._
import io.deltaic.spark.write.ReadOnlyOptions

/**
 * `spark.read.format("delta").load(path)` and `df.write.format("delta").save(path)`.
 *
 * Reading is DataSource V2. Saving enters by the older interface, since V2 without a catalog cannot
 * create a table at a path, and goes on as a V2 plan.
 */
class DeltaicDataSource extends SupportsV1OverwriteWithSaveAsTable with CreatableRelationProvider
    with StreamSinkProvider with DataSourceRegister {

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
    if (found.log.exists) tableOf(spark, found, options, None)
    else
      TableLocation.partition(spark, options)
        .map { case (table, path) => tableOf(spark, table, options, Some(path)) }
        .getOrElse(new AbsentTable(spark, found.log))
  }

  /** @param partition the path of the partition that is to be read */
  private def tableOf(
      spark: SparkSession,
      found: FoundTable,
      options: CaseInsensitiveStringMap,
      partition: Option[Path]
  ): Table = {
    val log = found.log
    val (snapshot, origin) = TimeTravel.of(spark, found, options) match {
      case Some(asOf) => (TimeTravel.open(spark, log, asOf), TableOrigin.TimeTravel)
      case None => (log.latest(), TableOrigin.Path)
    }
    val within = partition.map(TablePartition.of(spark, _, snapshot))
    within.foreach(_.requireFiles(log, snapshot))
    val table = new DeltaicTable(spark, log, snapshot, origin, within = within)
    if (ChangeFeedOptions.areIn(options)) table.changes(options) else table
  }

  /** What a column may be, the commit decides: Spark would refuse variants before. */
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
    ReadOnlyOptions.refuse(log.table.toString, parameters.keys)
    if (found.suffix.isDefined)
      throw ReadOnlyOptions.refusal(log.table.toString, s"path ${parameters("path")}")
    // Asked once: whether a table that appears later is a conflict is decided when this commits.
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
        JobShims.calledAs(spark, s"save to ${log.table}") {
          SessionShims.run(spark, new Save(spark, log, snapshot, mode, parameters, query).plan)
        }
    }
    SavedRelation(sqlContext, data.schema)
  }

  /** `df.writeStream.start(path)`; see also [[io.deltaic.spark.sql.RefuseChanges]]. */
  override def createSink(
      sqlContext: SQLContext,
      parameters: Map[String, String],
      partitionColumns: Seq[String],
      outputMode: OutputMode
  ): Sink = throw UnsupportedOperation.command("writeStream")
}

/** What Spark wants back from a save; nobody reads it. */
private final case class SavedRelation(override val sqlContext: SQLContext, schema: StructType)
    extends BaseRelation
