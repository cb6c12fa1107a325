package io.deltaic.spark.metrics

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}

import io.deltaic.protocol.{AddFile, RemoveFile}

class FilesAdded extends CountMetric("filesAdded", "number of files added")

class SizeOfFilesAdded extends SizeMetric("sizeOfFilesAdded", "size of files added")

class FilesRemoved extends CountMetric("filesRemoved", "number of files removed")

class DeletionVectorsWritten
    extends CountMetric("deletionVectorsWritten", "number of deletion vectors written")

class CommitAttempts extends CountMetric("commitAttempts", "number of commit attempts")

class CommitTime extends DurationMetric("commitTime", "time to commit")

/** What a write has committed, for [[WriteMetrics]]. */
private[spark] final case class CommittedWrite(
    adds: Seq[AddFile],
    removes: Seq[RemoveFile],
    attempts: Long,
    commitMillis: Long
)

/** What Spark's UI shows of a write, or of a change of rows. */
private[spark] object WriteMetrics {
  private val filesAdded = new FilesAdded
  private val sizeOfFilesAdded = new SizeOfFilesAdded
  private val filesRemoved = new FilesRemoved
  private val deletionVectorsWritten = new DeletionVectorsWritten
  private val commitAttempts = new CommitAttempts
  private val commitTime = new CommitTime

  def all: Array[CustomMetric] = Array(
    filesAdded,
    sizeOfFilesAdded,
    filesRemoved,
    deletionVectorsWritten,
    commitAttempts,
    commitTime
  )

  /** None for a write that has committed nothing. */
  def values(write: Option[CommittedWrite]): Array[CustomTaskMetric] =
    write.fold(Array.empty[CustomTaskMetric])(valuesOf)

  /** A file whose deletion vector changes is neither added nor removed. */
  private def valuesOf(write: CommittedWrite): Array[CustomTaskMetric] = {
    val removed = write.removes.map(_.path).toSet
    val (rewritten, added) = write.adds.partition(add => removed(add.path))
    Array(
      filesAdded.of(added.size.toLong),
      sizeOfFilesAdded.of(added.map(_.sizeBytes).sum),
      filesRemoved.of((removed -- rewritten.map(_.path)).size.toLong),
      deletionVectorsWritten.of(rewritten.count(_.deletionVector.isDefined).toLong),
      commitAttempts.of(write.attempts),
      commitTime.of(write.commitMillis)
    )
  }
}
