package io.deltaic.spark.write

import java.io.FileNotFoundException

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

/**
 * Finds what the lost tasks of a failed write left behind.
 *
 * A task that another one's failure ends deletes its files itself, as far as it gets to know. But one
 * that completes at that very moment takes its files for committed, while Spark has stopped to listen
 * and drops its message. Only the names of its files tell then, so the table is listed; a write that
 * fails is rare enough for that.
 */
private[write] final class StrayFiles(table: Path, configuration: Configuration) {
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
