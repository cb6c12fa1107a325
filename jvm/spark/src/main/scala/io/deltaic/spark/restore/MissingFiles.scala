package io.deltaic.spark.restore

import java.io.FileNotFoundException
import java.nio.file.Files

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, SessionInternals}
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.protocol.{AddFile, LogPath}
import io.deltaic.spark.util.{FileSystemThreads, LocalFiles}

/**
 * Finds the data files and deletion vector files that no longer exist. A directory with several of them is listed: a
 * page of a listing has a thousand names, and costs an object store as much as the status of one file. The listing of
 * a directory with many other files is given up, and the rest of its files are looked up one by one, by many threads.
 */
private[restore] final class MissingFiles(conf: Configuration) {
  import MissingFiles._

  /** The missing files, in no order. */
  def among(directories: Seq[Directory]): Seq[Path] = {
    val (listed, others) = directories.partition(_.names.size >= MinListed)
    val unseen = FileSystemThreads.map(listed)(notListed)
    val unknown = others.flatMap(_.paths) ++ unseen.collect { case Unknown(paths) => paths }.flatten
    val lookedUp =
      FileSystemThreads.map(unknown.grouped(Lookups).toVector)(_.filterNot(exists))
    (unseen.collect { case Missing(paths) => paths } ++ lookedUp).flatten
  }

  private def notListed(wanted: Directory): Unseen = {
    val Directory(directory, names) = wanted
    val rest = mutable.HashSet.from(names)
    val limit = ListedPerFile.toLong * names.size + ListedAtLeast
    val isWhole = readNames(directory, limit) { name =>
      rest -= name
      rest.nonEmpty
    }
    val paths = rest.iterator.map(new Path(directory, _)).toVector
    if (isWhole) Missing(paths) else Unknown(paths)
  }

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

private[restore] object MissingFiles {

  /** Fewer files are looked up by the driver alone. */
  private val MinInTasks = 1000

  private val TasksOfSlot = 4

  /**
   * The paths of the missing files, sorted. Many are looked up by jobs of Spark, which it shows, and which can be
   * cancelled.
   */
  def among(
      spark: SparkSession,
      table: Path,
      conf: Configuration,
      files: Seq[AddFile]
  ): Seq[String] = {
    val directories = directoriesOf(table, files)
    val missing =
      if (files.size < MinInTasks) new MissingFiles(conf).among(directories)
      else {
        val shared = spark.sparkContext.broadcast(new SerializableConfiguration(conf))
        val tasks = SessionInternals.leafParallelism(spark) * TasksOfSlot
        try
          JobInternals.inExecutors(
            spark,
            JobInternals.name("RESTORE", s"find ${files.size} files", table.toString),
            directories.grouped((directories.size / tasks).max(1)).toSeq
          )(ofTask => new MissingFiles(shared.value.value).among(ofTask).iterator)
        finally shared.destroy()
      }
    missing.map(_.toString).sorted
  }

  /** The data files and deletion vector files. */
  def directoriesOf(table: Path, files: Seq[AddFile]): Seq[Directory] =
    files.flatMap { file =>
      LogPath.toAbsolute(table, file.path) +:
        file.deletionVector.flatMap(_.absolutePath(table)).toSeq
    }.groupMap(_.getParent)(_.getName)
      .map { case (directory, names) => Directory(directory, names.distinct) }
      .toSeq

  /** Wanted files of a directory. */
  final case class Directory(path: Path, names: Seq[String]) {
    def paths: Seq[Path] = names.map(new Path(path, _))
  }

  /** The number of files from which on their directory is listed. */
  private val MinListed = 8

  /** How many names of a directory are read at most for each wanted file, and besides. */
  private val ListedPerFile = 20
  private val ListedAtLeast = 1000

  /** The number of files that a task looks up one by one. */
  private val Lookups = 16

  private sealed trait Unseen
  private final case class Missing(paths: Seq[Path]) extends Unseen

  /** Files that may exist. */
  private final case class Unknown(paths: Seq[Path]) extends Unseen
}
