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
) {
  private val removed = removes.iterator.map(_.path).toSet

  /** A file whose deletion vector changes is neither added nor removed. */
  private[metrics] val (kept, added) = adds.partition(add => removed(add.path))

  private[metrics] def numRemoved: Int = (removed -- kept.iterator.map(_.path)).size
}

/** What Spark's UI shows of a write, or of a change of rows. */
private[spark] object WriteMetrics {

  private val metrics: Seq[(UiMetric, CommittedWrite => Long)] = Seq(
    new FilesAdded -> (_.added.size.toLong),
    new SizeOfFilesAdded -> (_.added.iterator.map(_.sizeBytes).sum),
    new FilesRemoved -> (_.numRemoved.toLong),
    new DeletionVectorsWritten -> (_.kept.count(_.deletionVector.isDefined).toLong),
    new CommitAttempts -> (_.attempts),
    new CommitTime -> (_.commitMillis)
  )

  def all: Array[CustomMetric] = metrics.map { case (metric, _) => metric }.toArray

  /** None for a write that has committed nothing. */
  def values(write: Option[CommittedWrite]): Array[CustomTaskMetric] =
    write.toArray.flatMap(done => metrics.map { case (metric, count) => metric.of(count(done)) })
}
