package io.deltaic.spark.vacuum

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals, WriteInternals}
import org.apache.spark.util.SerializableConfiguration
import org.slf4j.LoggerFactory

import io.deltaic.log.{FileNames, LastVacuumInfo, LogStore}
import io.deltaic.protocol.{Action, AddFile}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.commit.Message
import io.deltaic.spark.util.FileSystemThreads

/**
 * A VACUUM whose files have been found. Python commits its start, lets it delete the files, and commits its end.
 *
 * @param snapshot the version in which the files are unused
 */
final class VacuumRun private[vacuum] (
    spark: SparkSession,
    log: DeltaLog,
    snapshot: Snapshot,
    request: VacuumRequest,
    paths: TablePaths,
    unused: UnusedFiles
) extends AutoCloseable {
  import VacuumRun.logger

  /** The numbers of files and directories to delete and of listed directories, and the size of the files. */
  def summary(): String = Message.of("UnusedFileCounts")(
    "numFiles" -> (unused.numFiles + unused.directories.size),
    "sizeBytes" -> unused.sizeBytes,
    "numDirectories" -> unused.numListedDirectories
  ).toString

  /** The absolute paths of what is to be deleted: files, then directories that are empty without them. */
  private[spark] def shown: Iterator[String] =
    (unused.paths() ++ unused.directories).map(paths.absolute(_).toString)

  /**
   * Deletes the files and the directories that are empty without them.
   *
   * @return how many there were, how many could not be deleted, and why the first of them could not
   */
  def delete(): String = {
    val conf = WriteInternals.hadoopConf(spark, Map.empty)
    val added = addedMeanwhile()
    val files = if (added.size == 0) unused.paths() else unused.paths().filterNot(added.contains)
    val ofFiles = VacuumRun.deleteFiles(spark, paths, conf, files, unused.numFiles)
    val ofDirectories = new FileDeletion(paths, conf)
    ofDirectories.deleteDirectories(unused.directories)
    val deleted = ofFiles + ofDirectories.counts
    logger.info(
      "Table {}: VACUUM has deleted {} files and directories of {} bytes",
      log.table,
      deleted.numDeleted,
      unused.sizeBytes
    )
    Message.of("DeletedFileCounts")(
      "numDeleted" -> deleted.numDeleted,
      "numFailed" -> deleted.numFailed,
      "failure" -> deleted.failure
    ).toString
  }

  /** The files that commits since have added: RESTORE adds files again that were unused before. */
  private def addedMeanwhile(): PathHashes = {
    val added = new PathHashes
    val newest = log.latest().version
    if (newest > snapshot.version)
      new CommitActions(log).map(snapshot.version + 1, newest)(addedBy)
        .foreach(_.foreach(added.addHash))
    added
  }

  private def addedBy(actions: Iterator[Action]): Array[Long] =
    FilesInUse.ofActions(paths, actions.filter(_.isInstanceOf[AddFile]))

  /** Records up to which commit the removed files are deleted, which the next VACUUM LITE begins after. */
  def record(): Unit =
    for (version <- log.newestNotAfter(request.cutoffMs)) {
      val directory = FileNames.logDirectory(log.table)
      val store = LogStore.forPath(directory, log.conf)
      val last = LastVacuumInfo.read(directory, store).filter(_.version <= snapshot.version)
      val isLiteUsed = request.isLite || last.exists(_.isLiteUsed)
      val isFurther = !last.exists(_.version > version)
      val info =
        if (isFurther) LastVacuumInfo(version, Some(request.cutoffMs), isLiteUsed)
        else last.get.copy(isLiteUsed = isLiteUsed)
      LastVacuumInfo.write(directory, store, info)
    }

  override def close(): Unit = unused.close()
}

private object VacuumRun {
  private val logger = LoggerFactory.getLogger(classOf[VacuumRun])

  /** Fewer files are deleted by the driver alone. */
  private val MinInTasks = 1000L

  /** The paths of so many files are in memory. */
  private val FilesPerJob = 100000
  private val TasksOfSlot = 4

  /** A store slows down a client that deletes from too many places. */
  private val ThreadsOfTask = 2

  /** Many are deleted by jobs of Spark, which it shows, and which can be cancelled. */
  private def deleteFiles(
      spark: SparkSession,
      paths: TablePaths,
      conf: Configuration,
      files: Iterator[String],
      numFiles: Long
  ): DeletedFiles =
    if (numFiles < MinInTasks) {
      val deletion = new FileDeletion(paths, conf)
      deletion.deleteFiles(files, FileSystemThreads.count(paths.table))
      deletion.counts
    } else {
      val shared = spark.sparkContext.broadcast(new SerializableConfiguration(conf))
      val phase = JobInternals.name("VACUUM", s"delete $numFiles files", paths.table.toString)
      val tasks = SessionInternals.leafParallelism(spark) * TasksOfSlot
      try
        files.grouped(FilesPerJob).map { ofJob =>
          JobInternals.inExecutors(spark, phase, ofJob.grouped(ofJob.size / tasks + 1).toSeq) {
            ofTask =>
              val deletion = new FileDeletion(paths, shared.value.value)
              deletion.deleteFiles(ofTask.iterator, ThreadsOfTask)
              Iterator.single(deletion.counts)
          }.foldLeft(DeletedFiles())(_ + _)
        }.foldLeft(DeletedFiles())(_ + _)
      finally shared.destroy()
    }
}
