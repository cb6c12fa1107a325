package io.deltaic.spark.optimize

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.SessionInternals

import io.deltaic.protocol.AddFile
import io.deltaic.replay.Snapshot
import io.deltaic.spark.commit.OperationInfo
import io.deltaic.spark.curve.RowOrder
import io.deltaic.spark.scan.files.FileSplits.sessionZone
import io.deltaic.spark.schema.{ClusteringColumns, PartitionKey, TableSchema}
import io.deltaic.spark.util.SessionSettings

/**
 * Auto compaction: an OPTIMIZE of the partitions that commits have added files to, as far as they have many small
 * files. Deleted rows are no reason to rewrite a file.
 *
 * A clustered table has no partitions. If it has many small files that are not clustered yet, their rows are clustered:
 * they become a cube, with which small clustered files are merged as far as the bound on what a clustering writes allows.
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
      maxDeletedRowsRatio = 1.0,
      maxTasks = ofCommand.maxTasks.min((SessionInternals.leafParallelism(spark) / 2).max(1)),
      batchBytes = None
    )
  }

  /**
   * The small files of those partitions that have enough of them. Of a clustered table, those that are not clustered, and
   * all that are.
   */
  override private[optimize] def considered(
      spark: SparkSession,
      snapshot: Snapshot
  ): Option[IndexedSeq[AddFile]] = {
    val isClustered = ClusteringColumns.physical(snapshot).nonEmpty
    Some(if (isClustered) consideredOfClustered(snapshot) else smallFiles(spark, snapshot))
  }

  private def smallFiles(spark: SparkSession, snapshot: Snapshot): IndexedSeq[AddFile] = {
    val partitions = new PartitionKey(TableSchema.of(snapshot), sessionZone(spark))
    val requested = addedTo.map(partitions.of).toSet
    val files = snapshot.files
    val small =
      (0 until files.size).iterator.filter(files.sizeBytes(_) < limits.minFileBytes).map(files.add)
        .map(file => partitions.of(file) -> file)
        .filter { case (partition, _) => requested(partition) }
        .toIndexedSeq
    val counts = small.groupMapReduce(_._1)(_ => 1L)(_ + _)
    small.collect { case (partition, file) if counts(partition) >= limits.minNumFiles => file }
  }

  private def consideredOfClustered(snapshot: Snapshot): IndexedSeq[AddFile] = {
    val files = snapshot.files
    val small =
      (0 until files.size).iterator.filter(files.sizeBytes(_) < limits.minFileBytes).map(files.add)
        .filter(file => ClusterTags.mayCluster(file) && ClusterTags.of(file).isEmpty).toIndexedSeq
    if (small.size < limits.minNumFiles) IndexedSeq.empty
    else small ++ snapshot.adds.filter(ClusterTags.of(_).isDefined)
  }

  private def isSmall(file: AddFile): Boolean = file.sizeBytes < limits.minFileBytes

  override private[optimize] def candidates(
      files: IndexedSeq[AddFile],
      table: RewrittenTable
  ): IndexedSeq[RewriteCandidate] =
    if (table.clusteredBy.isEmpty) files.map(RewriteCandidate.optional)
    else table.clusterSelection.incremental(files, mayMerge = isSmall)

  override private[optimize] def order(table: RewrittenTable): Option[RowOrder] =
    RewriteRequest.clusteringOrder(table)

  override private[optimize] def canBeTakenBack: Boolean = true
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
