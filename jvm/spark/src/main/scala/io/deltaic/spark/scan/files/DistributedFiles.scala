package io.deltaic.spark.scan.files

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, WriteInternals}
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.replay.checkpoint.UnreadableContent
import io.deltaic.replay.{CheckpointSlice, DeltaLog, FileCounts, FileTable, Snapshot, TableSize}
import io.deltaic.spark.metrics.SkippedFiles
import io.deltaic.spark.skipping.{MergedAggregates, RowAggregate, SnapshotStatistics}

/**
 * The files of a distributed snapshot. Executors read the checkpoint, one slice per task, and leave
 * out the files that later commits have superseded. To the rest they apply what the driver applies
 * to files in memory: the same replay, the same decoding, the same predicate. Only the selected
 * files reach the driver, and the driver does not cache them. Executors cache slices
 * ([[CheckpointSliceCache]]).
 *
 * @param options of the read, which may configure the file system
 */
private[scan] final class DistributedFiles(
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Snapshot,
    options: Map[String, String]
) {
  import DistributedFiles._

  /** The state that executors need for every selection. */
  private lazy val shared: Broadcast[Shared] = {
    val conf = WriteInternals.hadoopConf(spark, options)
    val superseded = snapshot.stored.fold(Set.empty[String])(s => s.superseded)
    spark.sparkContext.broadcast(Shared(new SerializableConfiguration(conf), superseded))
  }

  def choose(pruning: FilePruning): PrunedFiles =
    run(pruning, "files")(chosen => Iterator(chosen.toBatch)).fold(
      _.choose(pruning),
      { sent =>
        val batches = sent :+ inMemory(pruning).toBatch
        val files = FileTable.of(pruning.table, batches.flatMap(_.files))
        val statistics = SnapshotStatistics.of(files, pruning.schema.skipping, pruning.zone)
        val unevaluated = batches.flatMap(_.unevaluated).headOption
        val skipped = batches.map(_.skipped).fold(SkippedFiles.none)(_ + _)
        val all = Array.range(0, files.size)
        pruning.first(new PrunedFiles(files, statistics, all, unevaluated, () => skipped))
      }
    )

  /** See [[io.deltaic.spark.skipping.FileStatsAggregator.aggregate]]. */
  def aggregate(
      pruning: FilePruning,
      groupBy: Seq[Attribute],
      aggregates: Seq[RowAggregate]
  ): Option[Seq[Array[Any]]] = {
    val aggregated = aggregateOf(groupBy, aggregates) _
    run(pruning, "rows")(aggregated.andThen(Iterator(_))).fold(
      _.aggregate(pruning, groupBy, aggregates),
      sent => MergedAggregates.of(sent :+ aggregated(inMemory(pruning)), groupBy.size, aggregates)
    )
  }

  /** The number and total size of the selected files. */
  def size(pruning: FilePruning): TableSize =
    run(pruning, "size")(chosen => Iterator(chosen.size)).fold(
      _.size(pruning),
      { sent =>
        val sizes = sent :+ inMemory(pruning).size
        sizes.fold(TableSize.none)(_ + _)
      }
    )

  private def inMemory(pruning: FilePruning): PrunedFiles = pruning.among(
    snapshot.filesInMemory,
    SnapshotStatistics.of(snapshot.filesInMemory, pruning.schema.skipping, pruning.zone)
  )

  /**
   * Applies `of` to the selected files of each batch. An unreadable slice is detected only here.
   * Then an older checkpoint is used, as for a snapshot in memory; the left side is the source to
   * use instead.
   */
  private def run[T](pruning: FilePruning, what: String)(
      of: PrunedFiles => Iterator[T]
  ): Either[DistributedFiles, Seq[T]] = {
    val slices = snapshot.stored.fold(Seq.empty[CheckpointSlice])(_.slices)
    val results = inTasks(
      spark,
      JobInternals.name("scan", what, snapshot.table.toString),
      slices,
      pruning,
      shared
    )(of)
    results.collectFirst { case Left(unreadable) => unreadable } match {
      case None =>
        val read = results.collect { case Right(result) => result }
        snapshot.recordCounts(read.map(_.counts).foldLeft(FileCounts.none)(_ + _))
        Right(read.flatMap(_.found))
      case Some(reason) =>
        Left(new DistributedFiles(spark, log, log.withoutCheckpoint(snapshot, reason), options))
    }
  }
}

private object DistributedFiles {

  /**
   * The result of a task for a slice.
   *
   * @param counts of all candidate files
   */
  private final case class SliceResult[T](counts: FileCounts, found: Seq[T])

  private def aggregateOf(groupBy: Seq[Attribute], aggregates: Seq[RowAggregate])(
      chosen: PrunedFiles
  ): Option[Seq[Array[Any]]] =
    if (chosen.unevaluated.isDefined) None else chosen.rows.aggregate(groupBy, aggregates)

  /** @param superseded keys of files that later commits have superseded */
  private final case class Shared(conf: SerializableConfiguration, superseded: Set[String])

  /**
   * Outside of the class, so that tasks do not serialize it. The left side is the reason why a slice cannot be
   * read.
   */
  private def inTasks[T](
      spark: SparkSession,
      description: String,
      slices: Seq[CheckpointSlice],
      pruning: FilePruning,
      shared: => Broadcast[Shared]
  )(of: PrunedFiles => Iterator[T]): Seq[Either[String, SliceResult[T]]] =
    if (slices.isEmpty) Nil
    else {
      val broadcast = shared
      JobInternals.inExecutors(spark, description, slices)(ofSlice(_, pruning, broadcast, of))
    }

  private def ofSlice[T](
      slice: CheckpointSlice,
      pruning: FilePruning,
      shared: Broadcast[Shared],
      of: PrunedFiles => Iterator[T]
  ): Iterator[Either[String, SliceResult[T]]] = {
    val found = Vector.newBuilder[T]
    var counts = FileCounts.none
    val read = UnreadableContent.orElse {
      CheckpointSliceCache.shared.files(slice, shared.value.conf.value) { batch =>
        UnreadableContent.rethrowingConsumerErrors {
          val files = batch.without(shared.value.superseded)
          counts += files.counts
          val statistics = SnapshotStatistics.of(files, pruning.schema.skipping, pruning.zone)
          found ++= of(pruning.among(files, statistics))
          ()
        }
      }
    }
    Iterator(read match {
      case Right(_) => Right(SliceResult(counts, found.result()))
      case Left(cause) => Left(s"${slice.path}: $cause")
    })
  }
}
