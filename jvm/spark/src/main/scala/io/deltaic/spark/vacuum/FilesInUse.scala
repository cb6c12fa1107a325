package io.deltaic.spark.vacuum

import scala.collection.immutable.HashSet
import scala.collection.mutable

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, WriteInternals}
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.protocol._
import io.deltaic.replay.checkpoint.UnreadableContent
import io.deltaic.replay.{CheckpointSlice, DeltaLog, FileTable, Snapshot}

/**
 * The files that versions within the retention need: the data files of the newest version, those that were removed
 * since the cutoff, the files of the deletion vectors of both, and the change data of commits since the cutoff.
 *
 * Tombstones alone do not show all of them: a checkpoint has no tombstones from before the retention at its time, and
 * no change data. So the commits since the cutoff are read as well, as far as the log has them.
 *
 * @param paths which of the files count
 * @param hashes gets the hashes of their paths
 */
private[vacuum] final class FilesInUse(
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Snapshot,
    cutoffMs: Long,
    paths: TablePaths,
    hashes: PathHashes
) {

  /** Adds the hashes of the paths of all of them. */
  def add(): Unit = {
    addFiles(snapshot.filesInMemory)
    snapshot.tombstonesInMemory.foreach(addTombstone)
    addStored(snapshot)
    addCommitsInRetention()
  }

  private def addFiles(files: FileTable): Unit =
    FilesInUse.ofFiles(paths, files) { hash => hashes.addHash(hash); () }

  private def addTombstone(remove: RemoveFile): Unit =
    if (isInRetention(remove)) FilesInUse.ofAction(paths, remove).foreach(hashes.add)

  private def isInRetention(remove: RemoveFile): Boolean =
    FilesInUse.isInRetention(remove, cutoffMs)

  /** Executors read the file actions of a distributed snapshot, and send hashes. */
  private def addStored(current: Snapshot): Unit = current.stored.foreach { stored =>
    val conf = new SerializableConfiguration(WriteInternals.hadoopConf(spark, Map.empty))
    val shared = spark.sparkContext.broadcast(
      FilesInUse.Shared(conf, stored.superseded, paths, cutoffMs)
    )
    try {
      val name = JobInternals.name("VACUUM", "find files in use", log.table.toString)
      val results = JobInternals.inExecutors(spark, name, stored.slices)(
        FilesInUse.ofSlice(_, shared)
      )
      results.collectFirst { case Left(reason) => reason } match {
        case Some(reason) =>
          val other = log.withoutCheckpoint(current, reason)
          addFiles(other.filesInMemory)
          other.tombstonesInMemory.foreach(addTombstone)
          addStored(other)
        case None => results.foreach(_.foreach(_.foreach(hashes.addHash)))
      }
    } finally shared.destroy()
  }

  private def addCommitsInRetention(): Unit = {
    val first =
      try log.versionFrom(cutoffMs)
      catch {
        case e: DeltaicThrowable if e.condition == "DELTAIC_COMMIT_NOT_FOUND" =>
          snapshot.version + 1
      }
    new CommitActions(log)
      .foreach("VACUUM", "find files in use", first, snapshot.version) {
        FilesInUse.ofActions(paths, _)
      }(_.foreach(hashes.addHash))
  }
}

private[vacuum] object FilesInUse {

  private final case class Shared(
      conf: SerializableConfiguration,
      superseded: HashSet[String],
      paths: TablePaths,
      cutoffMs: Long
  )

  /** The data file of an action and the file of its deletion vector, relative to the table. */
  def ofAction(paths: TablePaths, action: FileAction): Seq[String] =
    paths.ofLog(action.path) ++ action.deletionVector.flatMap(paths.ofVector)

  /** The hashes of the files of a commit. */
  def ofActions(paths: TablePaths, actions: Iterator[Action]): Array[Long] =
    actions.flatMap {
      case file: FileAction => ofAction(paths, file)
      case change: AddCdcFile => paths.ofLog(change.path)
      case _ => Nil
    }.map(PathHashes.of).toArray

  /** A `remove` without a timestamp is treated as the oldest, as in replay. */
  def isInRetention(remove: RemoveFile, cutoffMs: Long): Boolean =
    remove.deletionTimestampMs.exists(_ >= cutoffMs)

  private def ofFiles(paths: TablePaths, files: FileTable)(visit: Long => Unit): Unit = {
    var i = 0
    while (i < files.size) {
      paths.ofLog(files.path(i)).foreach(path => visit(PathHashes.of(path)))
      val vector = files.deletionVector(i)
      if (vector != null) paths.ofVector(vector).foreach(path => visit(PathHashes.of(path)))
      i += 1
    }
  }

  /** The hashes of the files of a slice; the left side is the reason why it cannot be read. */
  private def ofSlice(
      slice: CheckpointSlice,
      shared: Broadcast[Shared]
  ): Iterator[Either[String, Array[Long]]] = {
    val Shared(conf, superseded, paths, cutoffMs) = shared.value
    val found = mutable.ArrayBuilder.make[Long]
    val read = UnreadableContent.orElse {
      slice.files(conf.value) { batch =>
        ofFiles(paths, batch.without(superseded)) { hash => found += hash; () }
      }
      slice.tombstones(conf.value) { (key, remove) =>
        if (!superseded(key) && isInRetention(remove, cutoffMs))
          ofAction(paths, remove).foreach(path => found += PathHashes.of(path))
      }
    }
    Iterator(read.map(_ => found.result()).left.map(e => s"${slice.path}: ${e.getMessage}"))
  }
}
