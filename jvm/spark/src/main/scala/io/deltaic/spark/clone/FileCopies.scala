package io.deltaic.spark.clone

import java.io.{FileNotFoundException, IOException}
import java.nio.channels.FileChannel
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.nio.file.StandardOpenOption.{CREATE_NEW, READ, WRITE}
import java.nio.file.{Files, NoSuchFileException}

import scala.collection.mutable.ArrayBuffer
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.apache.hadoop.io.IOUtils
import org.apache.spark.TaskContext
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{JobInternals, WriteInternals}
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.spark.util.{FileSystemThreads, LocalFiles}

/**
 * A file of a deep clone.
 *
 * @param temporary the name under which it is written
 * @param sizeBytes 0 if the log does not say how large it is
 */
private[clone] final case class FileCopy(
    from: Path,
    to: Path,
    temporary: Path,
    sizeBytes: Long
)

/**
 * Why a file was not copied.
 *
 * @param sizeBytes the size of the file; none if it does not exist
 */
private[clone] final case class CopyProblem(file: FileCopy, sizeBytes: Option[Long])

/**
 * Copies files in executors. A file that is there already, as long as its original, is not copied again: it gets its
 * name when it is complete.
 */
private[clone] object FileCopies {

  /** A task copies files of so many bytes, or so many of them. */
  private val BytesOfTask = 256L << 20
  private val FilesOfTask = 1000
  private val BufferBytes = 1 << 20

  /** Schemes of stores in which a file appears when it is complete. */
  private val Atomic = Set("s3", "s3a", "s3n", "gs")

  /** @return the files that do not exist, or have another size than in the log of the source */
  def run(spark: SparkSession, clone: Path, copies: Seq[FileCopy]): Seq[CopyProblem] = {
    val conf = new SerializableConfiguration(WriteInternals.hadoopConf(spark, Map.empty))
    val shared = spark.sparkContext.broadcast(conf)
    val description = JobInternals.name("CLONE", "copy files", clone.toString)
    val threads = FileSystemThreads.count(clone)
    try
      JobInternals.inExecutors(spark, description, tasks(copies)) { files =>
        val copier = new FileCopies(shared.value.value)
        val task = TaskContext.get()
        val problems = FileSystemThreads.map(files, threads) { file =>
          if (task.isInterrupted()) None else copier.copy(file)
        }
        problems.iterator.flatten
      }
    finally shared.destroy()
  }

  private def tasks(copies: Seq[FileCopy]): Seq[Seq[FileCopy]] = {
    val found = ArrayBuffer.empty[Seq[FileCopy]]
    val task = ArrayBuffer.empty[FileCopy]
    var bytes = 0L
    copies.foreach { file =>
      if (task.nonEmpty && (bytes + file.sizeBytes > BytesOfTask || task.size >= FilesOfTask)) {
        found += task.toVector
        task.clear()
        bytes = 0L
      }
      task += file
      bytes += file.sizeBytes
    }
    if (task.nonEmpty) found += task.toVector
    found.toVector
  }
}

private[clone] final class FileCopies(conf: Configuration) {
  import FileCopies._

  def copy(file: FileCopy): Option[CopyProblem] =
    try
      if (LocalFiles.isLocal(file.from) && LocalFiles.isLocal(file.to)) copyLocal(file)
      else copyRemote(file)
    catch {
      case _: FileNotFoundException | _: NoSuchFileException
          if !file.from.getFileSystem(conf).exists(file.from) =>
        Some(CopyProblem(file, None))
    }

  private def problem(file: FileCopy, sizeBytes: Long): Option[CopyProblem] =
    Option.when(file.sizeBytes > 0 && file.sizeBytes != sizeBytes) {
      CopyProblem(file, Some(sizeBytes))
    }

  /** By the operating system, without a copy in memory. */
  private def copyLocal(file: FileCopy): Option[CopyProblem] = {
    val (from, to) = (LocalFiles.of(file.from), LocalFiles.of(file.to))
    val size = Files.size(from)
    val found = problem(file, size)
    if (found.isEmpty && (!Files.exists(to) || Files.size(to) != size)) {
      val temporary = LocalFiles.of(file.temporary)
      Files.createDirectories(to.getParent)
      try {
        Using.resource(FileChannel.open(from, READ)) { in =>
          Using.resource(FileChannel.open(temporary, CREATE_NEW, WRITE)) { out =>
            var position = 0L
            while (position < size) {
              val count = in.transferTo(position, size - position, out)
              if (count <= 0) throw new IOException(s"$from has become shorter")
              position += count
            }
          }
        }
        Files.move(temporary, to, ATOMIC_MOVE)
      } finally {
        Files.deleteIfExists(temporary)
        ()
      }
    }
    found
  }

  private def copyRemote(file: FileCopy): Option[CopyProblem] = {
    val (source, target) = (file.from.getFileSystem(conf), file.to.getFileSystem(conf))
    val original = source.getFileStatus(file.from)
    val found = problem(file, original.getLen)
    if (found.isEmpty && !isCopied(original, file.to)) {
      // An object appears when it is complete; to rename it would copy it again.
      val isAtomic = Atomic(file.to.toUri.getScheme)
      val written = if (isAtomic) file.to else file.temporary
      Using.resource(source.open(file.from)) { in =>
        Using.resource(target.create(written, true)) { out =>
          IOUtils.copyBytes(in, out, BufferBytes, false)
        }
      }
      if (!isAtomic) publish(target, written, file.to, original)
    }
    found
  }

  private def publish(files: FileSystem, written: Path, to: Path, original: FileStatus): Unit =
    // Another task may have been faster, or may have left a file that is shorter.
    if (isCopied(original, to)) { files.delete(written, false); () }
    else {
      files.delete(to, false)
      if (!files.rename(written, to) && !isCopied(original, to))
        throw new IOException(s"$written cannot be renamed to $to")
    }

  private def isCopied(original: FileStatus, to: Path): Boolean =
    try to.getFileSystem(conf).getFileStatus(to).getLen == original.getLen
    catch { case _: FileNotFoundException => false }
}
