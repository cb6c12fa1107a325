package io.deltaic.spark.scan

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobShims, WriteShims}
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.replay._
import io.deltaic.spark.skipping.{MergedAggregates, RowAggregate, SnapshotStatistics}

/**
 * The files of a distributed snapshot. Executors read the checkpoint, each task one slice of it, leave out what commits
 * have superseded, and apply to the rest what the driver applies to files in memory: the same replay, the same decoding,
 * the same predicate. Only what they choose reaches the driver, and nothing of it is kept here; what there is room for
 * stays in the executors ([[KeptSlices]]).
 *
 * @param options of the read, which may tell how to reach the file system
 */
private[scan] final class DistributedFiles(
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Snapshot,
    options: Map[String, String]
) {
  import DistributedFiles._

  /** What executors need for any choice. */
  private lazy val shared: Broadcast[Shared] = {
    val conf = WriteShims.hadoopConf(spark, options)
    val superseded = snapshot.stored.fold(Set.empty[String])(s => s.superseded)
    spark.sparkContext.broadcast(Shared(new SerializableConfiguration(conf), superseded))
  }

  def choose(choice: FileChoice): ChosenFiles =
    run(choice, "files")(_.toBatch.iterator).fold(
      _.choose(choice),
      { sent =>
        val batches = sent ++ inMemory(choice).toBatch
        val files = FileTable.of(choice.table, batches.map(_.files))
        val statistics = SnapshotStatistics.of(files, choice.schema.skipping, choice.zone)
        val undecided = batches.flatMap(_.undecided).headOption
        choice.first(new ChosenFiles(files, statistics, Array.range(0, files.size), undecided))
      }
    )

  /** See [[io.deltaic.spark.skipping.FileRows.aggregate]]. */
  def aggregate(
      choice: FileChoice,
      groupBy: Seq[Attribute],
      aggregates: Seq[RowAggregate]
  ): Option[Seq[Array[Any]]] = {
    val answers = answer(groupBy, aggregates) _
    run(choice, "rows")(answers.andThen(Iterator(_))).fold(
      _.aggregate(choice, groupBy, aggregates),
      sent => MergedAggregates.of(sent :+ answers(inMemory(choice)), groupBy.size, aggregates)
    )
  }

  /** How many files are chosen, and how large they are. */
  def size(choice: FileChoice): TableSize =
    run(choice, "size")(chosen => Iterator(chosen.size)).fold(
      _.size(choice),
      { sent =>
        val sizes = sent :+ inMemory(choice).size
        TableSize(sizes.map(_.numFiles).sum, sizes.map(_.sizeBytes).sum)
      }
    )

  private def inMemory(choice: FileChoice): ChosenFiles = choice.among(
    snapshot.filesInMemory,
    SnapshotStatistics.of(snapshot.filesInMemory, choice.schema.skipping, choice.zone)
  )

  /**
   * What `of` makes of the chosen files of each batch. That a slice cannot be read shows only now; then something older
   * must do, as for a snapshot in memory, and the left side is what to ask instead.
   */
  private def run[T](choice: FileChoice, what: String)(
      of: ChosenFiles => Iterator[T]
  ): Either[DistributedFiles, Seq[T]] = {
    val slices = snapshot.stored.fold(Seq.empty[CheckpointSlice])(_.slices)
    val results = inTasks(
      spark,
      JobShims.name("scan", what, snapshot.table.toString),
      slices,
      choice,
      shared
    )(of)
    results.collectFirst { case Left(unreadable) => unreadable } match {
      case None =>
        val read = results.collect { case Right(result) => result }
        snapshot.noteCounted(read.map(_.counts).foldLeft(FileCounts.none)(_ + _))
        Right(read.flatMap(_.found))
      case Some(reason) =>
        Left(new DistributedFiles(spark, log, log.withoutCheckpoint(snapshot, reason), options))
    }
  }
}

private object DistributedFiles {

  /**
   * What a task makes of a slice.
   *
   * @param counts of all files there are to choose from
   */
  private final case class OfSlice[T](counts: FileCounts, found: Seq[T])

  private def answer(groupBy: Seq[Attribute], aggregates: Seq[RowAggregate])(
      chosen: ChosenFiles
  ): Option[Seq[Array[Any]]] =
    if (chosen.undecided.isDefined) None else chosen.rows.aggregate(groupBy, aggregates)

  /** @param superseded keys of files that do not count any more */
  private final case class Shared(conf: SerializableConfiguration, superseded: Set[String])

  /** Outside of the class, so that the tasks take nothing of it along. Why a slice cannot be read is on the left. */
  private def inTasks[T](
      spark: SparkSession,
      description: String,
      slices: Seq[CheckpointSlice],
      choice: FileChoice,
      shared: => Broadcast[Shared]
  )(of: ChosenFiles => Iterator[T]): Seq[Either[String, OfSlice[T]]] =
    if (slices.isEmpty) Nil
    else {
      val broadcast = shared
      JobShims.inExecutors(spark, description, slices)(ofSlice(_, choice, broadcast, of))
    }

  private def ofSlice[T](
      slice: CheckpointSlice,
      choice: FileChoice,
      shared: Broadcast[Shared],
      of: ChosenFiles => Iterator[T]
  ): Iterator[Either[String, OfSlice[T]]] = {
    val found = Vector.newBuilder[T]
    var counts = FileCounts.none
    val read = UnreadableContent.orElse {
      KeptSlices.shared.files(slice, shared.value.conf.value) { batch =>
        UnreadableContent.notIn {
          val files = batch.without(shared.value.superseded)
          counts += files.counts
          val statistics = SnapshotStatistics.of(files, choice.schema.skipping, choice.zone)
          found ++= of(choice.among(files, statistics))
          ()
        }
      }
    }
    Iterator(read match {
      case Right(_) => Right(OfSlice(counts, found.result()))
      case Left(cause) => Left(s"${slice.path}: $cause")
    })
  }
}
