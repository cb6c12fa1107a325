package io.deltaic.spark.commit

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

/**
 * Deletes the files of lost tasks of a failed write.
 *
 * A task that is killed because another one failed deletes its files itself. But a task
 * that completes at the same moment considers its files committed, while Spark no longer accepts
 * its message. Its files can only be found by their names, so the table is listed; failed writes are
 * rare enough for that.
 */
private[spark] final class LostTaskFiles(table: Path, configuration: Configuration) {
  private val fileSystem: FileSystem = table.getFileSystem(configuration)

  def delete(isOurs: String => Boolean): Unit = delete(table, isOurs)

  private def delete(folder: Path, isOurs: String => Boolean): Unit =
    list(folder).foreach { status =>
      val path = status.getPath
      if (status.isDirectory && !isLog(path)) delete(path, isOurs)
      else if (status.isFile && isOurs(path.getName)) fileSystem.delete(path, false)
    }

  private def list(folder: Path): Seq[FileStatus] =
    try fileSystem.listStatus(folder).toSeq
    catch { case _: FileNotFoundException => Nil }

  private def isLog(path: Path): Boolean = path.getParent == table && path.getName == "_delta_log"
}
