package io.deltaic.spark.convert

import java.io.FileNotFoundException
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.{Files, NoSuchFileException}

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.hadoop.util.functional.RemoteIterators

import io.deltaic.log.FileNames
import io.deltaic.spark.util.{FileSystemThreads, LocalFiles}

/**
 * A file of a folder, or a directory whose files are not listed yet.
 *
 * @param path qualified
 */
private[convert] final case class FolderEntry(
    path: String,
    isDirectory: Boolean,
    sizeBytes: Long = 0L,
    modificationTimeMs: Long = 0L
) {
  def directory: String = path.substring(0, path.lastIndexOf('/'))

  def status: FileStatus =
    new FileStatus(sizeBytes, isDirectory, 1, 0L, modificationTimeMs, new Path(path))
}

private[convert] object FolderEntry {

  def of(status: FileStatus): FolderEntry = FolderEntry(
    status.getPath.toString,
    status.isDirectory,
    status.getLen,
    status.getModificationTime
  )
}

/**
 * Lists the data files of a folder. Files and directories whose names begin with `_` or `.` are none, as in Spark, except
 * the directories of partition columns with such names.
 */
private[convert] final class FolderListing(root: Path, conf: Configuration) {

  /** The files directly in the directories. */
  def filesIn(directories: Seq[Path]): Seq[FolderEntry] =
    FileSystemThreads.map(directories, threads)(entries).flatten.filterNot(_.isDirectory)

  /**
   * The files below the folder, by levels of directories.
   *
   * @param maxDirectories the number of directories of a level from which on they are returned instead of their files
   */
  def below(maxDirectories: Long): Seq[FolderEntry] = {
    val files = mutable.ArrayBuffer.empty[FolderEntry]
    var level = Seq(FolderEntry(root.toString, isDirectory = true))
    while (level.nonEmpty && level.size < maxDirectories) {
      val (directories, found) =
        FileSystemThreads.map(level, threads)(e => entries(new Path(e.path))).flatten
          .partition(_.isDirectory)
      files ++= found
      level = directories
    }
    (files ++ level).toVector
  }

  /** The files of the entries, which are files or directories. */
  def expanded(some: Iterator[FolderEntry]): Iterator[FolderEntry] = some.flatMap { entry =>
    if (entry.isDirectory) expanded(entries(new Path(entry.path)).iterator)
    else Iterator.single(entry)
  }

  private def threads: Int = FileSystemThreads.count(root)

  private def entries(directory: Path): Seq[FolderEntry] = {
    val found =
      if (LocalFiles.isLocal(directory)) ofLocal(directory) else ofFileSystem(directory)
    if (directory != root) found.find(nameOf(_) == FileNames.LogDirectory).foreach { log =>
      throw new InvalidFile(log.path, "it is the log of a Delta table of its own")
    }
    found.filterNot(isHidden)
  }

  private def ofLocal(directory: Path): Seq[FolderEntry] =
    LocalFiles.entries(directory)(_.map { file =>
      val path = s"${directory.toString.stripSuffix("/")}/${file.getFileName}"
      // Links are followed: Spark reads the files behind them, too. A missing one is an error when it is read.
      try {
        val attributes = Files.readAttributes(file, classOf[BasicFileAttributes])
        FolderEntry(
          path,
          attributes.isDirectory,
          attributes.size,
          attributes.lastModifiedTime.toMillis
        )
      } catch { case _: NoSuchFileException => FolderEntry(path, isDirectory = false) }
    }.toVector)

  private def ofFileSystem(directory: Path): Seq[FolderEntry] = {
    val found = Vector.newBuilder[FolderEntry]
    try
      RemoteIterators.foreach[FileStatus](
        directory.getFileSystem(conf).listStatusIterator(directory),
        status => found += FolderEntry.of(status)
      )
    catch { case _: FileNotFoundException => () }
    found.result()
  }

  private def nameOf(entry: FolderEntry): String =
    entry.path.substring(entry.path.lastIndexOf('/') + 1)

  private def isHidden(entry: FolderEntry): Boolean = {
    val name = nameOf(entry)
    val isPartition = entry.isDirectory && name.contains('=')
    (name.startsWith("_") || name.startsWith(".")) && !isPartition || name.endsWith("._COPYING_")
  }
}
