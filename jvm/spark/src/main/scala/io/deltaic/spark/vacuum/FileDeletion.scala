package io.deltaic.spark.vacuum

import java.io.IOException
import java.nio.file.{DirectoryNotEmptyException, Files, Path => LocalPath, Paths}
import java.util.concurrent.atomic.{AtomicLong, AtomicReference}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.JobInternals
import org.slf4j.LoggerFactory

import io.deltaic.spark.util.{FileSystemTasks, FileSystemThreads, LocalFiles}

/** Deletes the files that VACUUM has found: many by a job of Spark. */
private[vacuum] final class UnusedFileDeletion(
    spark: SparkSession,
    paths: TablePaths,
    conf: Configuration
) {

  def deleteFiles(relative: IndexedSeq[String]): DeletedFiles = {
    val paths = this.paths
    FileSystemTasks(
      spark,
      JobInternals.name("VACUUM", s"delete ${relative.size} files", paths.table.toString),
      paths.table,
      conf,
      relative,
      (_: String) => 1
    ) { (conf, files, threads) =>
      val deletion = new FileDeletion(paths, conf)
      deletion.deleteFiles(files, threads)
      deletion.counts
    }.foldLeft(DeletedFiles())(_ + _)
  }

  /** Deletes directories that are empty; one into which a file was written meanwhile stays. */
  def deleteDirectories(relative: Seq[String]): DeletedFiles = {
    val deletion = new FileDeletion(paths, conf)
    deletion.deleteDirectories(relative)
    deletion.counts
  }
}

/**
 * What has been deleted. A task that is run again finds less.
 *
 * @param numDeleted the number of files and directories that existed and are deleted
 * @param failure the path of a file that could not be deleted, and why
 */
private[vacuum] final case class DeletedFiles(
    numDeleted: Long = 0,
    numFailed: Long = 0,
    failure: Option[String] = None
) {
  def +(other: DeletedFiles): DeletedFiles = DeletedFiles(
    numDeleted + other.numDeleted,
    numFailed + other.numFailed,
    failure.orElse(other.failure)
  )
}

/**
 * Deletes files by several threads, and several with one request where the file system can do that.
 *
 * A file that cannot be deleted does not keep others from being deleted.
 */
private final class FileDeletion(paths: TablePaths, conf: Configuration) {
  import FileDeletion._

  private val table = paths.table
  private val files = table.getFileSystem(conf)

  private val isLocal = LocalFiles.isLocal(table)
  private val localRoot = table.toUri.getPath

  private val deleted = new AtomicLong
  private val failed = new AtomicLong
  private val firstFailure = new AtomicReference[String]

  /** What has been deleted so far. */
  def counts: DeletedFiles = DeletedFiles(deleted.get, failed.get, Option(firstFailure.get))

  /** Deletes files, by several threads at a time. */
  def deleteFiles(relative: Iterator[String], threads: Int): Unit = {
    val bulk = files.createBulkDelete(table)
    try {
      val pageSize = bulk.pageSize
      if (pageSize > 1)
        FileSystemThreads.foreach(relative.grouped(pageSize), threads) { page =>
          attempt(page.head, page.size) {
            val refused = bulk.bulkDelete(page.map(paths.absolute).asJava).asScala
            refused.headOption.foreach(e => fail(e.getKey.toString, e.getValue, refused.size))
            page.size.toLong - refused.size
          }
        }
      else
        FileSystemThreads.foreach(relative.grouped(PathsTaken), threads)(_.foreach { path =>
          attempt(path, 1)(if (delete(path)) 1L else 0L)
        })
    } finally bulk.close()
  }

  /** Deletes directories that are empty; one into which a file was written meanwhile stays. */
  def deleteDirectories(relative: Seq[String]): Unit = relative.foreach { path =>
    val directory = paths.absolute(path)
    val isDeleted =
      try if (isLocal) Files.deleteIfExists(local(path)) else files.delete(directory, false)
      catch {
        case _: DirectoryNotEmptyException => false
        case e: IOException =>
          logger.debug(s"Table $table: the directory $directory is not deleted", e)
          false
      }
    if (isDeleted) deleted.incrementAndGet()
  }

  private def attempt(path: String, count: Int)(delete: => Long): Unit =
    try { deleted.addAndGet(delete); () }
    catch { case NonFatal(e) => fail(path, e.toString, count) }

  private def fail(path: String, reason: String, count: Int): Unit = {
    failed.addAndGet(count.toLong)
    firstFailure.compareAndSet(null, s"$path: $reason")
    logger.warn("Table {}: {} is not deleted: {}", table, path, reason)
  }

  /** Hadoop's local file system asks for the status of a file and of its checksum file before it deletes them. */
  private def delete(path: String): Boolean =
    if (isLocal) {
      val file = local(path)
      val existed = Files.deleteIfExists(file)
      Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
      existed
    } else files.delete(paths.absolute(path), false)

  /** Not by a Hadoop path, which costs as much as the deletion. */
  private def local(path: String): LocalPath = Paths.get(s"$localRoot/$path")
}

private object FileDeletion {
  private val logger = LoggerFactory.getLogger(classOf[FileDeletion])

  /** How many files a thread takes at a time. */
  private val PathsTaken = 64
}
