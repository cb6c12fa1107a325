package io.deltaic.spark.metrics

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}
import io.deltaic.replay.TableSize

class FilesRead extends CountMetric("filesRead", "number of files read")

class SizeOfFilesRead extends SizeMetric("sizeOfFilesRead", "size of files read")

class FilesSkippedByPartition
    extends CountMetric("filesSkippedByPartition", "number of files skipped by partition values")

class SizeSkippedByPartition
    extends SizeMetric("sizeSkippedByPartition", "size of files skipped by partition values")

class FilesSkippedByStatistics
    extends CountMetric("filesSkippedByStatistics", "number of files skipped by statistics")

class SizeSkippedByStatistics
    extends SizeMetric("sizeSkippedByStatistics", "size of files skipped by statistics")

class FilesSkippedAtRunTime
    extends CountMetric("filesSkippedAtRunTime", "number of files skipped by runtime filters")

class SizeSkippedAtRunTime
    extends SizeMetric("sizeSkippedAtRunTime", "size of files skipped by runtime filters")

class DeletionVectorsRead
    extends CountMetric("deletionVectorsRead", "number of deletion vectors of files read")

class RowsDeletedByVectors
    extends CountMetric("rowsDeletedByVectors", "number of rows deleted by these vectors")

/**
 * The files of a table that a scan does not read.
 *
 * @param byPartition because of their partition values
 * @param byStatistics because of their statistics, path, size or modification time
 */
private[spark] final case class SkippedFiles(byPartition: TableSize, byStatistics: TableSize) {

  def +(other: SkippedFiles): SkippedFiles =
    SkippedFiles(byPartition + other.byPartition, byStatistics + other.byStatistics)
}

private[spark] object SkippedFiles {
  val none: SkippedFiles = SkippedFiles(TableSize.none, TableSize.none)
}

/** What Spark's UI shows of a scan. */
private[spark] object ScanMetrics {

  private final case class Counts(
      read: TableSize,
      skippedAtRunTime: TableSize,
      skipped: SkippedFiles,
      vectors: Seq[DeletionVectorDescriptor]
  )

  private val metrics: Seq[(UiMetric, Counts => Long)] = Seq(
    new FilesRead -> (_.read.numFiles),
    new SizeOfFilesRead -> (_.read.sizeBytes),
    new FilesSkippedByPartition -> (_.skipped.byPartition.numFiles),
    new SizeSkippedByPartition -> (_.skipped.byPartition.sizeBytes),
    new FilesSkippedByStatistics -> (_.skipped.byStatistics.numFiles),
    new SizeSkippedByStatistics -> (_.skipped.byStatistics.sizeBytes),
    new FilesSkippedAtRunTime -> (_.skippedAtRunTime.numFiles),
    new SizeSkippedAtRunTime -> (_.skippedAtRunTime.sizeBytes),
    new DeletionVectorsRead -> (_.vectors.size.toLong),
    new RowsDeletedByVectors -> (_.vectors.iterator.map(_.cardinality).sum)
  )

  def all: Array[CustomMetric] = metrics.map { case (metric, _) => metric }.toArray

  /**
   * @param read the files that are read
   * @param selected the files that were left when the scan was planned: runtime filters have skipped the others
   */
  def values(
      read: Seq[AddFile],
      selected: Seq[AddFile],
      skipped: SkippedFiles
  ): Array[CustomTaskMetric] = {
    val size = TableSize.of(read)
    val left = if (read eq selected) size else TableSize.of(selected)
    val counts = Counts(size, left - size, skipped, read.flatMap(_.deletionVector))
    metrics.map { case (metric, count) => metric.of(count(counts)) }.toArray
  }
}
