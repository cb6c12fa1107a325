package io.deltaic.spark.optimize

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.SessionInternals

import io.deltaic.protocol.AddFile
import io.deltaic.replay.Snapshot
import io.deltaic.spark.commit.OperationInfo
import io.deltaic.spark.scan.files.FileSplits.sessionZone
import io.deltaic.spark.schema.{PartitionKey, TableSchema}
import io.deltaic.spark.util.SessionSettings

/**
 * Auto compaction: an OPTIMIZE of the partitions that commits have added files to, as far as they have many small
 * files. Deleted rows are no reason to rewrite a file.
 *
 * @param addedTo a new file of each of these partitions
 * @param limits as the session had set them when it committed
 */
private[optimize] final case class AutoCompactRequest(
    addedTo: Seq[AddFile],
    limits: AutoCompactLimits
) extends RewriteRequest {

  override def command: String = "OPTIMIZE"
  override def predicate: Option[String] = None

  override private[optimize] def operation(
      shown: Option[String],
      clusteredBy: Seq[Seq[String]]
  ): OperationInfo = {
    val ofCommand = OptimizeRequest().operation(shown, clusteredBy)
    ofCommand.copy(parameters = ofCommand.parameters + ("auto" -> "true"))
  }

  /** It uses half of the slots: writers need the others. */
  override private[optimize] def settings(spark: SparkSession): OptimizeSettings = {
    val ofCommand = OptimizeSettings.of(spark)
    ofCommand.copy(
      minFileBytes = limits.minFileBytes,
      maxFileBytes = limits.maxFileBytes,
      maxTasks = ofCommand.maxTasks.min((SessionInternals.leafParallelism(spark) / 2).max(1)),
      batchBytes = None
    )
  }

  /** The small files of those partitions that have enough of them. */
  override private[optimize] def considered(
      spark: SparkSession,
      snapshot: Snapshot
  ): Option[IndexedSeq[AddFile]] = {
    val partitions = new PartitionKey(TableSchema.of(snapshot), sessionZone(spark))
    val requested = addedTo.map(partitions.of).toSet
    val files = snapshot.files
    val small =
      (0 until files.size).iterator.filter(files.sizeBytes(_) < limits.minFileBytes).map(files.add)
        .map(file => partitions.of(file) -> file)
        .filter { case (partition, _) => requested(partition) }
        .toIndexedSeq
    val counts = small.groupMapReduce(_._1)(_ => 1L)(_ + _)
    Some(small.collect {
      case (partition, file) if counts(partition) >= limits.minNumFiles => file
    })
  }

  override private[optimize] def candidates(
      files: IndexedSeq[AddFile],
      table: RewrittenTable
  ): IndexedSeq[RewriteCandidate] = files.map(RewriteCandidate.optional)
}

/**
 * Settings of auto compaction.
 *
 * @param minNumFiles a partition is compacted if it has as many small files
 * @param minFileBytes smaller files are small
 * @param maxFileBytes the size of compacted files
 */
private[optimize] final case class AutoCompactLimits(
    minNumFiles: Long,
    minFileBytes: Long,
    maxFileBytes: Long
)

private[optimize] object AutoCompactLimits {
  private val MinNumFiles = "autoCompact.minNumFiles"
  private val MinFileSize = "autoCompact.minFileSize"
  private val MaxFileSize = "autoCompact.maxFileSize"

  def of(spark: SparkSession): AutoCompactLimits = {
    val maxFileBytes = SessionSettings.positiveBytes(spark, MaxFileSize).getOrElse(128L << 20)
    AutoCompactLimits(
      SessionSettings.wholeNumber(spark, MinNumFiles, 50).max(2),
      SessionSettings.positiveBytes(spark, MinFileSize).getOrElse((maxFileBytes / 2).max(1)),
      maxFileBytes
    )
  }
}
