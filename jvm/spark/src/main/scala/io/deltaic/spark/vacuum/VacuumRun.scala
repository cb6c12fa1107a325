package io.deltaic.spark.vacuum

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.WriteInternals
import org.slf4j.LoggerFactory

import io.deltaic.log.{FileNames, LastVacuumInfo, LogStore}
import io.deltaic.protocol.{Action, AddFile}
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.commit.Message
import io.deltaic.spark.util.Cancellation

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
    unused: UnusedFiles,
    cancellation: Cancellation
) extends AutoCloseable {
  import VacuumRun.logger

  /** The numbers of files and directories to delete and of listed directories, and the size of the files. */
  def summary(): String = {
    cancellation.check()
    Message.of("UnusedFileCounts")(
      "numFiles" -> (unused.numFiles + unused.directories.size),
      "sizeBytes" -> unused.sizeBytes,
      "numDirectories" -> unused.numListedDirectories
    ).toString
  }

  /** What is to be deleted, which takes the place of this run. */
  private[spark] def shown: ShownFiles = new ShownFiles(unused, paths)

  /**
   * Deletes the files and the directories that are empty without them.
   *
   * @return how many there were, how many could not be deleted, and why the first of them could not
   */
  def delete(): String = {
    val deletion =
      new UnusedFileDeletion(spark, paths, WriteInternals.hadoopConf(spark, Map.empty))
    val ofFiles = unused.paths().grouped(VacuumRun.FilesAtOnce).map { files =>
      val added = addedMeanwhile()
      cancellation.check()
      deletion.deleteFiles(files.filterNot(added.contains).toIndexedSeq)
    }.foldLeft(DeletedFiles())(_ + _)
    val deleted = ofFiles + deletion.deleteDirectories(unused.directories)
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

  private val addedSince = new PathHashes
  private var lastVersion = snapshot.version

  /** The files that commits since have added: RESTORE adds files again that were unused before. */
  private def addedMeanwhile(): PathHashes = {
    val newest = log.latest().version
    if (newest > lastVersion)
      new CommitActions(log).map(lastVersion + 1, newest)(addedBy)
        .foreach(_.foreach(addedSince.addHash))
    lastVersion = newest
    addedSince
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

  /** The maximum number of files of a job, whose paths are in memory. */
  private val FilesAtOnce = 100000
}
