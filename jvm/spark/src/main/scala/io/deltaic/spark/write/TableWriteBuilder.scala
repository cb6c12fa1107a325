package io.deltaic.spark.write

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.filter.Predicate
import org.apache.spark.sql.connector.expressions.{Expressions, SortDirection, SortOrder}
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.deltaic.SchemaShims

import io.deltaic.protocol.AddFile
import io.deltaic.replay.{DeltaLog, Snapshot}

/** What a write is about to change: an existing table, or one that its commit creates. */
private[spark] final case class WriteTarget(
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Option[Snapshot],
    partitionColumns: Seq[String],
    intent: WriteIntent
) {
  def table: String = log.table.toString
}

/** Which of the table's present files a write replaces. */
private[spark] sealed trait Replaced

private[spark] object Replaced {
  case object Nothing extends Replaced
  case object Everything extends Replaced

  /** The files of the partitions that the predicates select; they refer to partition columns only. */
  final case class Partitions(predicates: Seq[Predicate]) extends Replaced

  /** The files of those partitions into which the write puts a row. */
  case object WrittenPartitions extends Replaced
}

/** Configures an append or an overwrite. Nothing is decided or written before the query runs. */
private[spark] final class TableWriteBuilder(target: WriteTarget, info: LogicalWriteInfo)
    extends WriteBuilder
    with SupportsOverwriteV2
    with SupportsDynamicOverwrite {

  private var replaced: Replaced = Replaced.Nothing

  override def canOverwrite(predicates: Array[Predicate]): Boolean =
    predicates.forall { predicate =>
      PartitionPredicate.isSupported(predicate) && predicate.references.forall { reference =>
        reference.fieldNames.length == 1 &&
        target.partitionColumns.contains(reference.fieldNames.head)
      }
    }

  override def overwrite(predicates: Array[Predicate]): WriteBuilder = {
    replaced = Replaced.Partitions(predicates.toSeq)
    this
  }

  override def truncate(): WriteBuilder = {
    replaced = Replaced.Everything
    this
  }

  override def overwriteDynamicPartitions(): WriteBuilder = {
    // Without partitions there is one "partition", the table.
    replaced =
      if (target.partitionColumns.isEmpty) Replaced.Everything else Replaced.WrittenPartitions
    this
  }

  override def build(): Write = {
    ReadOnlyOptions.refuse(target.table, info.options.keySet.asScala)
    new TableWrite(target, replaced, info)
  }
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
    with RecordsReads {
  override val log: DeltaLog = target.log
  override val readVersion: Long = target.snapshot.fold(-1L)(_.version)

  @volatile private var merges = false

  /** The rows are those of a MERGE that only inserts, which Spark plans as an append. */
  private[write] def ofMerge(): Unit = merges = true

  private def stated: WriteTarget =
    if (merges) target.copy(intent = target.intent.copy(operation = "MERGE")) else target

  override def requiredDistribution(): Distribution = Distributions.unspecified()

  override def requiredOrdering(): Array[SortOrder] = target.partitionColumns.map { column =>
    Expressions.sort(SchemaShims.reference(column), SortDirection.ASCENDING)
  }.toArray

  /** Called when the query runs, not when it is explained. */
  override def toBatch: BatchWrite =
    new TableBatchWrite(
      stated,
      replaced,
      info.options.asCaseSensitiveMap,
      ComputedColumns.namesIn(info.schema),
      reads
    )

  override def description(): String = s"deltaic write to ${target.table}"
}

private[spark] final case class WrittenFiles(files: Seq[AddFile], identityMarks: Map[String, Long])
    extends WriterCommitMessage
