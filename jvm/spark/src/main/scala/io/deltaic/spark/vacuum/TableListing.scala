package io.deltaic.spark.vacuum

import scala.collection.mutable

import org.apache.hadoop.conf.Configuration
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, WriteInternals}
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.log.Progress
import io.deltaic.spark.util.{Cancellation, FileSystemThreads, LocalFiles, SessionSettings}

/**
 * Lists a table's directory and finds the files that are neither in use nor younger than the cutoff. Each level of
 * directories is listed by several threads. If there are very many directories, executors list them and what is below
 * them, and send only what is unused.
 */
private[vacuum] final class TableListing(
    spark: SparkSession,
    rule: UnusedRule,
    cancellation: Cancellation
) {
  import TableListing._

  private val conf = WriteInternals.hadoopConf(spark, Map.empty)
  private val table = rule.paths.table
  private val minDirectories = SessionSettings.wholeNumber(
    spark,
    "vacuum.distributed.minDirectories",
    if (spark.sparkContext.isLocal) Long.MaxValue else DefaultMinDirectories
  )

  def findIn(unused: UnusedFiles): Unit = {
    var level = Seq(Directory("", 0L))
    while (level.nonEmpty)
      if (level.size.toLong >= minDirectories) {
        inExecutors(level, unused)
        level = Nil
      } else level = inThreads(level, unused)
  }

  /** @return the directories of the next level */
  private def inThreads(level: Seq[Directory], unused: UnusedFiles): Seq[Directory] = {
    val next = mutable.ArrayBuffer.empty[Directory]
    val threads = FileSystemThreads.count(table)
    val phase = JobInternals.name("VACUUM", "list directories", table.toString)
    Progress.of(phase, Some(level.size.toLong), "directories") { progress =>
      FileSystemThreads.foreach(level.iterator, math.min(threads, level.size)) { directory =>
        cancellation.check()
        val (listed, below) = visit(directory, rule, conf)(unused.add)
        unused.addDirectory(listed)
        next.synchronized(next ++= below)
        progress.add(1)
      }
    }
    next.toSeq
  }

  private def inExecutors(level: Seq[Directory], unused: UnusedFiles): Unit = {
    val shared = spark.sparkContext.broadcast(Shared(rule, new SerializableConfiguration(conf)))
    try
      // Each job's result is on the driver as a whole.
      level.grouped(DirectoriesPerJob).foreach { part =>
        cancellation.check()
        val tasks = part.grouped(DirectoriesPerTask).toSeq
        val name = JobInternals.name("VACUUM", "list directories", table.toString)
        JobInternals.inExecutors(spark, name, tasks)(subtrees(_, shared)).foreach {
          case Left(directory) => unused.addDirectory(directory)
          case Right((path, sizeBytes)) => unused.add(path, sizeBytes)
        }
      }
    finally shared.destroy()
  }
}

private[vacuum] object TableListing {

  /** Below that, the threads of the driver are as fast as a job. */
  private val DefaultMinDirectories = 5000L
  private val DirectoriesPerJob = 20000
  private val DirectoriesPerTask = 100

  /** @param path relative to the table; empty for the table's own */
  private final case class Directory(path: String, modificationTimeMs: Long)

  private final case class Shared(rule: UnusedRule, conf: SerializableConfiguration)

  /** What is unused in these directories and below. */
  private def subtrees(
      directories: Seq[Directory],
      shared: Broadcast[Shared]
  ): Iterator[Either[ListedDirectory, (String, Long)]] = {
    val Shared(rule, conf) = shared.value
    val pending = mutable.Queue.from(directories)
    Iterator.continually(pending.nonEmpty).takeWhile(identity).flatMap { _ =>
      val found = Vector.newBuilder[Either[ListedDirectory, (String, Long)]]
      val (listed, below) = visit(pending.dequeue(), rule, conf.value) { (path, sizeBytes) =>
        found += Right((path, sizeBytes))
        ()
      }
      pending ++= below
      found += Left(listed)
      found.result()
    }
  }

  /** @return the directory, and those directly in it */
  private def visit(directory: Directory, rule: UnusedRule, conf: Configuration)(
      unused: (String, Long) => Unit
  ): (ListedDirectory, Seq[Directory]) = {
    val isRoot = directory.path.isEmpty
    val path = if (isRoot) rule.paths.table else rule.paths.absolute(directory.path)
    val entries =
      if (isRoot) DirectoryEntries.of(path, conf) else DirectoryEntries.below(path, conf)
    val prefix = if (isRoot) "" else directory.path + "/"
    val below = Vector.newBuilder[Directory]
    var keepsFiles = entries.isRecursive
    entries.foreach(path) { entry =>
      val full = prefix + entry.path
      rule.of(full, entry) match {
        case Found.Directory => below += Directory(full, entry.modificationTimeMs)
        case Found.Unused => unused(full, entry.sizeBytes)
        case Found.Kept => keepsFiles = true
        case Found.Checksum => ()
      }
    }
    val found = below.result()
    (
      ListedDirectory(directory.path, directory.modificationTimeMs, keepsFiles, found.size),
      found
    )
  }
}

/** What VACUUM does with an entry of a directory. */
private[vacuum] sealed trait Found

private[vacuum] object Found {
  case object Directory extends Found
  case object Unused extends Found
  case object Kept extends Found

  /** A checksum file of Hadoop's local file system, which is deleted together with its file. */
  case object Checksum extends Found
}

/** Which files are unused: those that no version within the retention needs, and that are older than the cutoff. */
private[vacuum] final case class UnusedRule(
    paths: TablePaths,
    hidden: HiddenNames,
    used: PathHashes,
    cutoffMs: Long
) {
  private val isLocal = LocalFiles.isLocal(paths.table)

  /** @param path of the entry, relative to the table */
  def of(path: String, entry: DirectoryEntry): Found =
    if (isLocal && entry.path.startsWith(".") && entry.path.endsWith(".crc")) Found.Checksum
    else if (hidden.inPath(entry.path)) Found.Kept
    else if (used.contains(path)) Found.Kept
    else if (entry.isDirectory) Found.Directory
    else if (entry.isFile && entry.modificationTimeMs < cutoffMs) Found.Unused
    else Found.Kept
}
