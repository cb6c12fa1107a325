package io.deltaic.spark.restore

import java.io.FileNotFoundException
import java.nio.file.Files

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.JobInternals

import io.deltaic.protocol.{AddFile, LogPath}
import io.deltaic.spark.util.{FileSystemTasks, FileSystemThreads, LocalFiles}

/**
 * Finds the data files and deletion vector files that no longer exist. A directory with several of them is listed: a
 * page of a listing has a thousand names, and costs an object store as much as the status of one file. The listing of
 * a directory with many other files is given up, and the rest of its files are looked up one by one.
 */
private[spark] object MissingFiles {

  /** The number of files from which on their directory is listed. */
  private val MinListed = 8

  /** How many names of a directory are read at most for each wanted file, and besides. */
  private val ListedPerFile = 20
  private val ListedAtLeast = 1000

  /** The maximum number of files of a directory that one thread looks up. */
  private val Lookups = 16

  /** The paths of the missing files, sorted. */
  def among(
      spark: SparkSession,
      table: Path,
      conf: Configuration,
      files: Seq[AddFile]
  ): Seq[String] = {

    def each[B](directories: Seq[Directory])(f: (MissingFiles, Directory) => B): Seq[B] =
      FileSystemTasks(
        spark,
        JobInternals.name("RESTORE", "find missing files", table.toString),
        table,
        conf,
        directories.toIndexedSeq,
        (_: Directory).names.size
      ) { (conf, some, threads) =>
        val missing = new MissingFiles(conf)
        FileSystemThreads.map(some.toVector, threads)(f(missing, _))
      }.flatten

    val (large, small) = directoriesOf(table, files).partition(_.names.size >= MinListed)
    val listed = each(large)(_.list(_))
    val unknown = (small ++ listed.map(_.unknown)).flatMap(_.cut(Lookups))
    val lookedUp = each(unknown)(_.lookUp(_))
    (listed.map(_.missing) ++ lookedUp).flatMap(_.paths).map(_.toString).sorted
  }

  /** The wanted files by their directories. */
  private def directoriesOf(table: Path, files: Seq[AddFile]): Seq[Directory] =
    files.flatMap { file =>
      LogPath.toAbsolute(table, file.path) +:
        file.deletionVector.flatMap(_.absolutePath(table)).toSeq
    }.groupMap(_.getParent)(_.getName)
      .map { case (directory, names) => Directory(directory, names.distinct) }
      .toSeq

  /** Some files of a directory. */
  private[restore] final case class Directory(path: Path, names: Seq[String]) {
    def paths: Seq[Path] = names.map(new Path(path, _))

    def cut(maxNames: Int): Seq[Directory] =
      names.grouped(maxNames).map(Directory(path, _)).toSeq
  }

  /** @param unknown files that may exist */
  private[restore] final case class Listed(missing: Directory, unknown: Directory)
}

private[restore] final class MissingFiles(conf: Configuration) {
  import MissingFiles._

  def list(wanted: Directory): Listed = {
    val Directory(directory, names) = wanted
    val rest = mutable.HashSet.from(names)
    val limit = ListedPerFile.toLong * names.size + ListedAtLeast
    val isWhole = readNames(directory, limit) { name =>
      rest -= name
      rest.nonEmpty
    }
    val (others, none) = (Directory(directory, rest.toVector), Directory(directory, Nil))
    if (isWhole) Listed(others, none) else Listed(none, others)
  }

  def lookUp(wanted: Directory): Directory =
    wanted.copy(names = wanted.names.filterNot(name => exists(new Path(wanted.path, name))))

  /** Calls `isOpen` with names in the directory until it returns false. False if there are more names than the limit. */
  private def readNames(directory: Path, limit: Long)(isOpen: String => Boolean): Boolean = {
    def read(names: Iterator[String]): Boolean = {
      var count = 0L
      var open = true
      while (open && count < limit && names.hasNext) {
        count += 1
        open = isOpen(names.next())
      }
      !open || !names.hasNext
    }
    if (LocalFiles.isLocal(directory))
      LocalFiles.entries(directory)(entries => read(entries.map(_.getFileName.toString)))
    else
      try read(names(directory))
      catch { case _: FileNotFoundException => true }
  }

  private def names(directory: Path): Iterator[String] = {
    val found = fileSystem(directory).listStatusIterator(directory)
    new Iterator[String] {
      override def hasNext: Boolean = found.hasNext
      override def next(): String = found.next().getPath.getName
    }
  }

  private def exists(path: Path): Boolean =
    if (LocalFiles.isLocal(path)) Files.exists(LocalFiles.of(path))
    else fileSystem(path).exists(path)

  private def fileSystem(path: Path): FileSystem = path.getFileSystem(conf)
}
