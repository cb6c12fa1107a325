package io.deltaic.spark.metrics

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}

import io.deltaic.protocol.AddFile
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
  private val filesRead = new FilesRead
  private val sizeOfFilesRead = new SizeOfFilesRead
  private val filesSkippedByPartition = new FilesSkippedByPartition
  private val sizeSkippedByPartition = new SizeSkippedByPartition
  private val filesSkippedByStatistics = new FilesSkippedByStatistics
  private val sizeSkippedByStatistics = new SizeSkippedByStatistics
  private val filesSkippedAtRunTime = new FilesSkippedAtRunTime
  private val sizeSkippedAtRunTime = new SizeSkippedAtRunTime
  private val deletionVectorsRead = new DeletionVectorsRead
  private val rowsDeletedByVectors = new RowsDeletedByVectors

  def all: Array[CustomMetric] = Array(
    filesRead,
    sizeOfFilesRead,
    filesSkippedByPartition,
    sizeSkippedByPartition,
    filesSkippedByStatistics,
    sizeSkippedByStatistics,
    filesSkippedAtRunTime,
    sizeSkippedAtRunTime,
    deletionVectorsRead,
    rowsDeletedByVectors
  )

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
    val vectors = read.flatMap(_.deletionVector)
    Array(
      filesRead.of(size.numFiles),
      sizeOfFilesRead.of(size.sizeBytes),
      filesSkippedByPartition.of(skipped.byPartition.numFiles),
      sizeSkippedByPartition.of(skipped.byPartition.sizeBytes),
      filesSkippedByStatistics.of(skipped.byStatistics.numFiles),
      sizeSkippedByStatistics.of(skipped.byStatistics.sizeBytes),
      filesSkippedAtRunTime.of(left.numFiles - size.numFiles),
      sizeSkippedAtRunTime.of(left.sizeBytes - size.sizeBytes),
      deletionVectorsRead.of(vectors.size.toLong),
      rowsDeletedByVectors.of(vectors.map(_.cardinality).sum)
    )
  }
}
