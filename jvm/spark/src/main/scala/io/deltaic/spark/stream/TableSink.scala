package io.deltaic.spark.stream

import java.util.{EnumSet, Locale, Set => JSet}

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.TableCapability._
import org.apache.spark.sql.connector.catalog.{Column, SupportsWrite, TableCapability}
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, WriteBuilder}
import org.apache.spark.sql.execution.datasources.DataSourceUtils
import org.apache.spark.sql.execution.streaming.Sink
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.{DataFrame, SaveMode}

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.catalog.target.{PathWrite, SaveStatement}
import io.deltaic.spark.catalog.{TableLocation, TableServices}
import io.deltaic.spark.util.{TableWithSchema, UnsupportedOperation}
import io.deltaic.spark.write.{PartitionOverwrite, ReadOnlyOptions, ReplaceWhere}

/**
 * A table as the sink of a stream. A rule plans each batch as the write of a batch query: see [[batch]].
 *
 * @param layout the columns of `partitionBy` and `clusterBy`, as options
 */
private[spark] final class TableSink(
    spark: SparkSession,
    val log: DeltaLog,
    displayName: Option[String] = None,
    layout: Map[String, String] = Map.empty
) extends TableWithSchema
    with SupportsWrite {

  override def name(): String = displayName.getOrElse(s"delta.`${log.table}`")

  /** The columns are those of each batch's version of the table. */
  override def columns(): Array[Column] = Array.empty

  override def capabilities(): JSet[TableCapability] =
    EnumSet.of(STREAMING_WRITE, TRUNCATE, ACCEPT_ANY_SCHEMA)

  /** Spark calls it only for a write that no rule has planned. */
  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = throw unplanned

  def unplanned: DeltaicThrowable =
    if (TableServices.current.hasExtension(spark))
      StreamOptions.invalid(
        log.table.toString,
        "trigger",
        "continuous",
        "rows are written in batches. Use trigger(processingTime=...) or trigger(availableNow=True)"
      )
    else
      DeltaicException(
        "DELTAIC_EXTENSION_MISSING",
        Map("table" -> log.table.toString, "operation" -> "a streaming write")
      )

  def requireSupported(mode: OutputMode): Unit =
    if (mode == OutputMode.Update())
      throw UnsupportedOperation.command("writeStream with output mode update")

  /**
   * The write of one batch, unresolved. Its transaction identifier is the query and the batch, as in delta-spark, so
   * that the batch is written once, whichever engine runs it again.
   *
   * @param settings the session of the query
   * @param query the rows, resolved
   */
  def batch(
      settings: SparkSession,
      query: LogicalPlan,
      mode: OutputMode,
      options: Map[String, String],
      queryId: String,
      batchId: Long
  ): LogicalPlan = {
    TableSink.requireAllowed(log.table.toString, options)
    val snapshot = newest()
    val own = options.filter { case (name, _) =>
      !TableSink.ofQuery(name.toLowerCase(Locale.ROOT))
    } ++ Map(
      "txnAppId" -> queryId,
      "txnVersion" -> batchId.toString,
      // In complete mode a batch replaces all rows, whatever the session's mode.
      DataSourceUtils.PARTITION_OVERWRITE_MODE -> "static"
    )
    val saveMode =
      if (mode == OutputMode.Complete()) SaveMode.Overwrite else SaveMode.Append
    val statement = SaveStatement.StreamingUpdate(mode.toString, queryId, batchId)
    new PathWrite(settings, log, snapshot, saveMode, own ++ layout, query, statement).plan
  }

  /** Whether the table has existed since the query was started. */
  private var existed = log.exists

  /** None if the first batch creates the table. One that is dropped meanwhile is not created again. */
  private def newest(): Option[Snapshot] = {
    val snapshot = Option.when(log.exists)(log.latest())
    if (existed && snapshot.isEmpty) throw TableLocation.notATableError(spark, log)
    existed = snapshot.isDefined
    snapshot
  }

  override def toString: String = s"DeltaSink[${log.table}]"
}

private[spark] object TableSink {

  /** Options of the query, and not of its writes. */
  private val ofQuery = Set("path", "checkpointlocation", "queryname")

  private val instead =
    "Write each batch in foreachBatch, whose DataFrame takes the options of batch writes"
  private val replaces = s"the output mode says which rows a batch replaces. $instead"
  private val identifies = s"the query and the batch number identify a batch. $instead"

  /** The options of batch writes that a stream refuses, with the reason. */
  private val refused =
    ReplaceWhere.Keys.map(_ -> replaces) ++ Seq("txnAppId", "txnVersion").map(_ -> identifies)

  def requireAllowed(table: String, options: Map[String, String]): Unit = {
    ReadOnlyOptions.refuse(table, options.keys)
    val present = options.map { case (name, value) => name.toLowerCase(Locale.ROOT) -> value }
    refused.foreach { case (name, reason) =>
      // PySpark passes None as null. Such an option is not set.
      present.get(name.toLowerCase(Locale.ROOT)).filter(_ != null)
        .foreach(value => throw StreamOptions.invalid(table, name, value, reason))
    }
    if (PartitionOverwrite.isDynamic(present.get).contains(true))
      throw StreamOptions.invalid(
        table,
        DataSourceUtils.PARTITION_OVERWRITE_MODE,
        "dynamic",
        replaces
      )
  }

  /** The columns of `partitionBy` and `clusterBy`. Spark passes the latter as an option. */
  def layout(partitionBy: Seq[String], options: Map[String, String]): Map[String, String] = {
    val clusterBy = options.filter { case (name, _) =>
      name.equalsIgnoreCase(DataSourceUtils.CLUSTERING_COLUMNS_KEY)
    }
    val partitions = Option.when(partitionBy.nonEmpty)(
      DataSourceUtils.PARTITIONING_COLUMNS_KEY ->
        DataSourceUtils.encodePartitioningColumns(partitionBy)
    )
    clusterBy ++ partitions
  }
}

/**
 * The sink of `writeStream.start(path)`, until a rule replaces it by the table. Spark starts a query with a continuous
 * trigger only for a sink that supports V2 writes; the table refuses it then.
 */
private[spark] final class PathSink(val table: TableSink) extends Sink with SupportsWrite {

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = throw table.unplanned

  override def addBatch(batchId: Long, data: DataFrame): Unit = throw table.unplanned

  override def toString: String = table.toString
}
