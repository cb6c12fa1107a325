package io.deltaic.spark.restore

import java.io.FileNotFoundException
import java.nio.file.Files

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.sql.deltaic.JobInternals

import io.deltaic.log.Progress
import io.deltaic.protocol.{AddFile, LogPath}
import io.deltaic.spark.util.{FileSystemThreads, LocalFiles}

/**
 * Finds the data files and deletion vector files that no longer exist. A directory with several of them is listed: a
 * page of a listing has a thousand names, and costs an object store as much as the status of one file. The listing of
 * a directory with many other files is given up, and the rest of its files are looked up one by one, by many threads.
 */
private[restore] final class MissingFiles(table: Path, conf: Configuration) {
  import MissingFiles._

  /** The paths of the missing files, sorted. */
  def among(files: Seq[AddFile]): Seq[String] = {
    val phase = JobInternals.name("RESTORE", "find missing files", table.toString)
    Progress.of(phase, Some(files.size.toLong), "files")(among(files, _))
  }

  private def among(files: Seq[AddFile], progress: Progress): Seq[String] = {
    val wanted = mutable.HashMap.empty[Path, mutable.HashSet[String]]
    files.iterator.flatMap(pathsOf).foreach { path =>
      wanted.getOrElseUpdate(path.getParent, mutable.HashSet.empty) += path.getName
    }
    val (listed, others) = wanted.toVector.partition { case (_, names) => names.size >= MinListed }
    val unseen = FileSystemThreads.map(listed) { case (directory, names) =>
      val found = notListed(directory, names)
      progress.add(found match {
        case Missing(_) => names.size.toLong
        case Unknown(paths) => names.size.toLong - paths.size
      })
      found
    }
    val unknown = others.flatMap { case (directory, names) => names.map(new Path(directory, _)) } ++
      unseen.collect { case Unknown(paths) => paths }.flatten
    val lookedUp = FileSystemThreads.map(unknown.grouped(Lookups).toVector) { paths =>
      val missing = paths.filterNot(exists)
      progress.add(paths.size.toLong)
      missing
    }
    (unseen.collect { case Missing(paths) => paths } ++ lookedUp).flatten.map(_.toString).sorted
  }

  private def pathsOf(file: AddFile): Seq[Path] =
    LogPath.toAbsolute(table, file.path) +: file.deletionVector.flatMap(_.absolutePath(table)).toSeq

  private def notListed(directory: Path, names: mutable.HashSet[String]): Unseen = {
    val rest = names.clone()
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

private object MissingFiles {

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
