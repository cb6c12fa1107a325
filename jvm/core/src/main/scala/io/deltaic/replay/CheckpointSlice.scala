package io.deltaic.replay

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.log.{CommitFile, CommitReader, LogStore}
import io.deltaic.protocol.{FileAction, RemoveFile}
import io.deltaic.replay.checkpoint.CheckpointFile

/**
 * A part of a checkpoint's file actions that can be read separately: one row group of a Parquet file, or a whole JSON
 * file. It is only their location, so it is small enough to be sent to another process.
 *
 * @param version the version of the checkpoint
 * @param rowGroup its index; None for a JSON file
 */
private[deltaic] final case class CheckpointSlice(
    table: String,
    version: Long,
    path: String,
    fileBytes: Long,
    modificationTimeMs: Long,
    rowGroup: Option[Int]
) {
  import CheckpointSlice._

  /** Visits the files in batches, so that a row group of millions of files is never completely in memory. */
  def files(conf: Configuration)(visit: FileTable => Unit): Unit = rowGroup match {
    case Some(number) =>
      opened(number, conf).filesInBatches(BatchRows)(b => visit(FileTable.of(root, Seq(b))))
    case None => visit(inline(conf).files)
  }

  /** Visits the tombstones, each with its [[FileKey]]. */
  def tombstones(conf: Configuration)(visit: (String, RemoveFile) => Unit): Unit =
    rowGroup match {
      case Some(number) => opened(number, conf).tombstones(visit)
      case None => inline(conf).tombstones.byKey.foreach { case (key, remove) =>
          visit(key, remove)
        }
    }

  private def root: Path = new Path(table)

  private def file: FileStatus =
    new FileStatus(fileBytes, false, 1, 0, modificationTimeMs, new Path(path))

  private def opened(number: Int, conf: Configuration): RowGroupRead =
    new RowGroupRead(root, new CheckpointFile(file, conf), number)

  private def inline(conf: Configuration): TableState = {
    val commits = new CommitReader(root, LogStore.forPath(file.getPath, conf))
    val actions = commits.readCheckpoint(version, file).collect { case a: FileAction => a }
    TableState.empty(root).advanced(Iterator(new CommitFile(version, 0, actions)))
  }
}

private[replay] object CheckpointSlice {

  /** At half a kilobyte a file, some thirty megabytes. */
  private val BatchRows = 65536

  def of(table: Path, version: Long, file: FileStatus, rowGroup: Option[Int]): CheckpointSlice =
    CheckpointSlice(
      table.toString,
      version,
      file.getPath.toString,
      file.getLen,
      file.getModificationTime,
      rowGroup
    )
}
