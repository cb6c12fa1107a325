package io.deltaic.spark.write

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.catalyst.expressions.{And, AttributeSet, Expression}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.SupportsWrite
import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.expressions.{Expressions, SortDirection, SortOrder}
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.deltaic.SchemaShims

import io.deltaic.protocol.AddFile
import io.deltaic.replay.{DeltaLog, Snapshot}

/**
 * What a write is about to change: an existing table, or one that its commit creates.
 *
 * @param endsRows what ends single rows, where a write replaces those
 * @param replacing the rows that it replaces, where Spark's own way of saying so is narrower than what
 *   we can do
 * @param replacedSql how the statement says which rows these are
 */
private[spark] final case class WriteTarget(
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Option[Snapshot],
    partitionColumns: Seq[String],
    intent: WriteIntent,
    endsRows: EndsRows,
    replacing: Option[Replaced] = None,
    replacedSql: Option[String] = None
) {
  def table: String = log.table.toString

  /** The table's, or those that it is created with. */
  def properties: Map[String, String] =
    snapshot.fold(intent.properties)(_.metadata.configuration)
}

/** A table of ours in the plan of a write, for rules to change what the write does. */
private[spark] trait WriteTargets {
  def writeTarget: WriteTarget

  /** The same table, to be written as stated. */
  def forWriting(target: WriteTarget): SupportsWrite
}

/** Which of the table's present files a write replaces. */
private[spark] sealed trait Replaced

private[spark] object Replaced {
  case object Nothing extends Replaced
  case object Everything extends Replaced

  /** The rows of which the condition is true: whole files, where it speaks of partition columns alone. */
  final case class Rows(condition: Expression) extends Replaced

  /**
   * The rows for which there is a new one that the condition is true of.
   *
   * @param condition over the columns of both, by their names
   * @param ofNewRows those that are the new row's
   * @param told how the history tells of it, with the name it does it under
   */
  final case class Matching(
      condition: Expression,
      ofNewRows: AttributeSet,
      told: (String, String)
  ) extends Replaced

  /** The files of those partitions into which the write puts a row. */
  case object WrittenPartitions extends Replaced
}

/** Configures an append or an overwrite. Nothing is decided or written before the query runs. */
private[spark] final class TableWriteBuilder(target: WriteTarget, info: LogicalWriteInfo)
    extends WriteBuilder
    with SupportsOverwriteV2
    with SupportsDynamicOverwrite {

  private var replaced: Replaced = target.replacing.getOrElse(Replaced.Nothing)

  /** Whether the plan itself names the partitions of the rows; see [[PartitionOverwrite]]. */
  private var isDynamic: Boolean = false

  /** What Spark can say, for sessions without our extension; see [[WriteTarget.replacing]]. */
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

  /** Of the option, Spark itself only looks at the session's default. */
  override def truncate(): WriteBuilder = {
    val dynamic =
      PartitionOverwrite.isDynamic(key => Option(info.options.get(key))).contains(true)
    val unsaid = if (dynamic) partitionsWritten else Replaced.Everything
    replaced = target.replacing.getOrElse(unsaid)
    this
  }

  override def overwriteDynamicPartitions(): WriteBuilder = {
    isDynamic = true
    replaced = partitionsWritten
    this
  }

  /** Without partitions there is one "partition", the table. */
  private def partitionsWritten: Replaced =
    if (target.partitionColumns.isEmpty) Replaced.Everything else Replaced.WrittenPartitions

  override def build(): Write = {
    ReadOnlyOptions.refuse(target.table, info.options.keySet.asScala)
    WriteFlags.requireValid(option => Option(info.options.get(option)))
    ReplaceWhere.requireHeeded(target.table, info.options, replaced)
    new TableWrite(target.copy(intent = intent), replaced, info)
  }

  /** As delta-spark records it: the mode that is in force, of appends and of tables without partitions, too. */
  private def intent: WriteIntent = {
    val own = withProperties(target.intent)
    val isSave = own.operation == "WRITE" || own.keepsDefinition
    def isInForce = isDynamic || PartitionOverwrite.isInForce(target.spark, info.options)
    replaced match {
      case Replaced.Rows(_) | Replaced.Matching(_, _, _) => own
      case _ if isSave && isInForce =>
        val recorded = PartitionOverwrite.Recorded -> "true"
        own.copy(operationParameters = own.operationParameters + recorded)
      case _ => own
    }
  }

  /** Properties among the options of a write to a table that is there: Python looks at them, and sets none. */
  private def withProperties(own: WriteIntent): WriteIntent =
    if (own.properties.nonEmpty) own
    else own.copy(properties = PropertyOptions.of(info.options.asCaseSensitiveMap.asScala.toMap))
}

/**
 * Sorts each task's rows by partition, so that a task has one file open at a time. How rows are
 * spread over tasks is left to the query.
 */
private[spark] final class TableWrite(
    target: WriteTarget,
    replaced: Replaced,
    info: LogicalWriteInfo
) extends RequiresDistributionAndOrdering
    with RecordsReads
    with CountsOnce {
  override val log: DeltaLog = target.log
  override val readVersion: Long = target.snapshot.fold(-1L)(_.version)

  /** Keys are in lower case, as Spark has them where case does not count. */
  private val options: Map[String, String] = info.options.asScala.toMap

  @volatile private var batch: Option[TableBatchWrite] = None

  private def progress: SessionWriteOptions = new SessionWriteOptions(target.spark, options)

  override def isApplied: Boolean = target.snapshot.exists(progress.isApplied)

  override def skip(): Unit = progress.used()

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

  override def description(): String = s"deltaic write to ${target.table}"
}

private[spark] object TableWrite {

  def orderedBy(partitionColumns: Seq[String]): Array[SortOrder] = partitionColumns.map { column =>
    Expressions.sort(SchemaShims.reference(column), SortDirection.ASCENDING)
  }.toArray
}

private[spark] final case class WrittenFiles(files: Seq[AddFile], identityMarks: Map[String, Long])
    extends WriterCommitMessage
