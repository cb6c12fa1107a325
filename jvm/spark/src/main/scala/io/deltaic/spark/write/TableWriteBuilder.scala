package io.deltaic.spark.write

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{And, AttributeSet, Expression}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.SupportsWrite
import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.expressions.{Expressions, SortDirection, SortOrder}
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.deltaic.SchemaInternals
import org.apache.spark.sql.types._

import io.deltaic.protocol.{AddFile, DeltaicException}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.commit.reads.ReadRecordingWrite
import io.deltaic.spark.metrics.WriteMetrics

/**
 * The target of a write: an existing table, or one that its commit creates.
 *
 * @param deletesRows deletes single rows, if a write replaces those
 * @param replacing the rows that it replaces, if Spark's V2 predicates cannot express them
 * @param replacedSql the condition of these rows as in the statement
 */
private[spark] final case class WriteTarget(
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Option[Snapshot],
    partitionColumns: Seq[String],
    intent: WriteIntent,
    deletesRows: DeletesRows,
    replacing: Option[Replaced] = None,
    replacedSql: Option[String] = None
) {
  def table: String = log.table.toString

  /** The properties of the table, or those with which it is created. */
  def properties: Map[String, String] =
    snapshot.fold(intent.definition.properties)(_.metadata.configuration)
}

/** A Deltaic table in the plan of a write, whose target rules can change. */
private[spark] trait WriteTargets {
  def writeTarget: WriteTarget

  /** The same table with another write target. */
  def forWriting(target: WriteTarget): SupportsWrite
}

/** The rows or files of the table that a write replaces. */
private[spark] sealed trait Replaced

private[spark] object Replaced {
  case object Nothing extends Replaced
  case object Everything extends Replaced

  /** The rows that satisfy the condition: whole files, if it references only partition columns. */
  final case class Rows(condition: Expression) extends Replaced

  /**
   * The rows that match a new one.
   *
   * @param condition over the columns of both, by name
   * @param ofNewRows the columns of the new row
   * @param parameter name and value of the operation parameter for the history
   */
  final case class Matching(
      condition: Expression,
      ofNewRows: AttributeSet,
      parameter: (String, String)
  ) extends Replaced

  /** The files of the partitions to which the write adds rows. */
  case object WrittenPartitions extends Replaced
}

/** Configures an append or an overwrite. Nothing is planned or written before the query runs. */
private[spark] final class TableWriteBuilder(target: WriteTarget, info: LogicalWriteInfo)
    extends WriteBuilder
    with SupportsOverwriteV2
    with SupportsDynamicOverwrite {

  private var replaced: Replaced = target.replacing.getOrElse(Replaced.Nothing)

  /** Whether the plan itself names the partitions of the rows; see [[PartitionOverwrite]]. */
  private var isDynamic: Boolean = false

  /** V2 predicates on partition columns, for sessions without our extension; see [[WriteTarget.replacing]]. */
  override def canOverwrite(predicates: Array[Predicate]): Boolean =
    predicates.forall { predicate =>
      PartitionPredicate.condition(predicate).isDefined && predicate.references.forall {
        reference =>
          reference.fieldNames.length == 1 &&
          target.partitionColumns.contains(reference.fieldNames.head)
      }
    }

  override def overwrite(predicates: Array[Predicate]): WriteBuilder = {
    replaced =
      Replaced.Rows(predicates.toSeq.flatMap(PartitionPredicate.condition).reduce(And(_, _)))
    this
  }

  /** Spark itself does not evaluate the option, only the session's mode. */
  override def truncate(): WriteBuilder = {
    val dynamic =
      PartitionOverwrite.isDynamic(key => Option(info.options.get(key))).contains(true)
    val default = if (dynamic) partitionsWritten else Replaced.Everything
    replaced = target.replacing.getOrElse(default)
    this
  }

  override def overwriteDynamicPartitions(): WriteBuilder = {
    isDynamic = true
    replaced = partitionsWritten
    this
  }

  /** A table without partition columns is one partition. */
  private def partitionsWritten: Replaced =
    if (target.partitionColumns.isEmpty) Replaced.Everything else Replaced.WrittenPartitions

  override def build(): Write = {
    ReadOnlyOptions.refuse(target.table, info.options.keySet.asScala)
    WriteFlags.requireValid(option => Option(info.options.get(option)))
    ReplaceWhere.requireHonored(target.table, info.options, replaced)
    requireOrderedPartitions()
    new TableWrite(target.copy(intent = intent), replaced, info)
  }

  /** Before Spark sorts the rows by the partition columns, which it cannot do by any type. */
  private def requireOrderedPartitions(): Unit = for {
    name <- target.partitionColumns
    column <- info.schema.find(_.name == name)
    if isUnordered(column.dataType)
  } throw DeltaicException(
    "DELTAIC_PARTITION_COLUMN_TYPE",
    Map("table" -> target.table, "column" -> name, "type" -> column.dataType.sql)
  )

  private def isUnordered(dataType: DataType): Boolean = dataType match {
    case _: StructType | _: ArrayType | _: MapType | _: VariantType | _: UserDefinedType[_] => true
    case _ => false
  }

  /** As delta-spark records it: the effective mode, also for appends and tables without partitions. */
  private def intent: WriteIntent = {
    val own = withProperties(target.intent)
    val isSave = own.operation.name == "WRITE" || own.keepsDefinition
    def isEffective = isDynamic || PartitionOverwrite.isEffective(target.spark, info.options)
    replaced match {
      case Replaced.Rows(_) | Replaced.Matching(_, _, _) => own
      case _ if isSave && isEffective =>
        own.withParameters(PartitionOverwrite.Recorded -> "true")
      case _ => own
    }
  }

  /** Properties in the options of a write to an existing table: Python checks them, and sets none. */
  private def withProperties(own: WriteIntent): WriteIntent =
    if (own.definition.properties.nonEmpty) own
    else {
      val properties = PropertyOptions.of(info.options.asCaseSensitiveMap.asScala.toMap)
      own.copy(definition = own.definition.copy(properties = properties))
    }
}

/**
 * Requires each task's rows to be sorted by partition, so that a task has one file open at a time. The
 * distribution of rows over tasks is left to the query.
 */
private[spark] final class TableWrite(
    target: WriteTarget,
    replaced: Replaced,
    info: LogicalWriteInfo
) extends RequiresDistributionAndOrdering
    with ReadRecordingWrite
    with IdempotentWrite
    with StreamingWrite {
  override val log: DeltaLog = target.log
  override val readVersion: Long = target.snapshot.fold(-1L)(_.version)

  /** Keys are in lower case, as in Spark's case-insensitive map. */
  private val options: Map[String, String] = info.options.asScala.toMap

  @volatile private var batch: Option[TableBatchWrite] = None

  private def progress: SessionWriteOptions = new SessionWriteOptions(target.spark, options)

  override def isAlreadyCommitted: Boolean = target.snapshot.exists(progress.isAlreadyCommitted)

  override def skip(): Unit = progress.skipped(log.table)

  override def requiredDistribution(): Distribution = Distributions.unspecified()

  override def requiredOrdering(): Array[SortOrder] = TableWrite.orderedBy(target.partitionColumns)

  /** Called when the query runs, not when it is explained. */
  override def toBatch: BatchWrite = {
    val write = new TableBatchWrite(
      target,
      replaced,
      options,
      ComputedColumns.namesIn(info.schema),
      recorded
    )
    batch = Some(write)
    write
  }

  def isCommitted: Boolean = batch.exists(_.isCommitted)

  override def supportedCustomMetrics(): Array[CustomMetric] = WriteMetrics.all

  override def reportDriverMetrics(): Array[CustomTaskMetric] =
    WriteMetrics.values(batch.flatMap(_.committedWrite))

  /** One batch of a stream, whose query has the same writes as a batch query. */
  override def toStreaming: StreamingWrite = this

  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory =
    new StreamedRowsWriterFactory(toBatch.createBatchWriterFactory(info))

  override def commit(epochId: Long, messages: Array[WriterCommitMessage]): Unit =
    batch.foreach(_.commit(messages))

  override def abort(epochId: Long, messages: Array[WriterCommitMessage]): Unit =
    batch.foreach(_.abort(messages))

  override def description(): String = s"deltaic write to ${target.table}"
}

private[spark] object TableWrite {

  def orderedBy(partitionColumns: Seq[String]): Array[SortOrder] = partitionColumns.map { column =>
    Expressions.sort(SchemaInternals.reference(column), SortDirection.ASCENDING)
  }.toArray
}

private[spark] final class StreamedRowsWriterFactory(rows: DataWriterFactory)
    extends StreamingDataWriterFactory {
  override def createWriter(
      partitionId: Int,
      taskId: Long,
      epochId: Long
  ): DataWriter[InternalRow] =
    rows.createWriter(partitionId, taskId)
}

private[spark] final case class WrittenFiles(
    files: Seq[AddFile],
    identityHighWaterMarks: Map[String, Long]
) extends WriterCommitMessage
