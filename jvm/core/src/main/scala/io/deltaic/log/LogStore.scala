package io.deltaic.log

import java.io.{ByteArrayInputStream, IOException, InputStream, OutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/** The outcome of an attempt to create a log file. Losing the race to another writer is an outcome, not a failure. */
sealed trait WriteOutcome

object WriteOutcome {
  case object Written extends WriteOutcome
  case object AlreadyExists extends WriteOutcome
}

/**
 * Reads and creates the files of a log. A store guarantees what optimistic concurrency relies on:
 *
 *   - a file appears under its name complete or not at all;
 *   - of several writers that create the same name, exactly one gets [[WriteOutcome.Written]], and its content stays
 *     (Protocol § Creation of New Log Entries);
 *   - a file is listed as soon as it exists.
 *
 * An exception from `writeIfAbsent` means that the write failed or that its outcome is unknown, never that other
 * content was written.
 */
trait LogStore {

  /** The whole content. Fails with `java.io.FileNotFoundException` when there is no such file. */
  def read(path: Path): Array[Byte]

  /**
   * The content as a stream, which the caller closes, for files that may not fit in memory. Fails as `read` does.
   */
  def open(path: Path): InputStream = new ByteArrayInputStream(read(path))

  /**
   * The files whose names are `firstName` or sort after it, ascending by name. Empty if the directory does not exist.
   */
  def listFrom(logDirectory: Path, firstName: String): Iterator[FileStatus]

  /** The status of one file, None when there is no such file. */
  def status(path: Path): Option[FileStatus]

  /** Creates the file with these bytes unless it exists; makes the directory when it is missing. */
  final def writeIfAbsent(path: Path, content: Array[Byte]): WriteOutcome =
    create(path, None)(_.write(content))

  /** Creates the file with these lines, each followed by a newline, unless it exists. */
  final def writeIfAbsent(path: Path, lines: Iterator[String]): WriteOutcome =
    create(path, None)(writeLines(_, lines))

  /** The same for a file that belongs to an existing table, see the other `writeBesideIfAbsent`. */
  final def writeBesideIfAbsent(
      path: Path,
      lines: Iterator[String],
      guard: () => Unit
  ): WriteOutcome = create(path, Some(guard))(writeLines(_, lines))

  private def writeLines(out: OutputStream, lines: Iterator[String]): Unit =
    lines.foreach { line =>
      out.write(line.getBytes(UTF_8))
      out.write('\n')
    }

  /**
   * Creates a file that belongs to an existing table, unless the file exists. Its content is what `write` writes to the
   * stream, which it leaves open. No directory is created: a missing directory means that the table was deleted and
   * must not reappear.
   *
   * @param guard throws if the file must not appear; called when the content is complete, right before the file gets
   *   its name
   */
  final def writeBesideIfAbsent(path: Path, guard: () => Unit)(
      write: OutputStream => Unit
  ): WriteOutcome = create(path, Some(guard))(write)

  /** Makes a directory unless it exists; fails if there is none above it. */
  def makeDirectory(path: Path): Unit

  /**
   * Writes or overwrites the file; a reader sees either the old or the new content. Fails if its directory is missing.
   */
  def replace(path: Path, content: Array[Byte]): Unit

  /** Deletes a file and returns whether it existed. */
  def delete(path: Path): Boolean

  /** Fails if this store cannot create files, before any work would be lost. */
  def requireWritable(path: Path): Unit = ()

  /** @param guard as in `writeBesideIfAbsent`; if there is one, no directory is created */
  protected def create(path: Path, guard: Option[() => Unit])(
      write: OutputStream => Unit
  ): WriteOutcome

  /**
   * Runs a step before the file gets its name. A failure here is certain, so the caller may clean up after the failed
   * commit. It must not do so when only the reply was lost.
   */
  protected def prepare[A](path: Path)(step: => A): A =
    try step
    catch {
      case e: IOException => throw writeFailed(path, e)
    }

  /** An error for a write that certainly failed. */
  protected def writeFailed(path: Path, cause: Exception): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_LOG_WRITE_FAILED",
      Map("file" -> path.toString, "reason" -> cause.toString),
      cause
    )
}

object LogStore {

  /** The store for the file system of a path. */
  def forPath(path: Path, conf: Configuration): LogStore = LogStoreChoice(path, conf)
}

/** Reads through a Hadoop file system; shared by every store except the local one. */
private[log] abstract class HadoopLogStore(conf: Configuration) extends LogStore {

  override def read(path: Path): Array[Byte] = Using.resource(open(path))(_.readAllBytes())

  override def open(path: Path): InputStream = path.getFileSystem(conf).open(path)

  override def listFrom(logDirectory: Path, firstName: String): Iterator[FileStatus] =
    try
      logDirectory
        .getFileSystem(conf)
        .listStatus(logDirectory)
        .filter(_.getPath.getName >= firstName)
        .sortBy(_.getPath.getName)
        .iterator
    catch { case _: java.io.FileNotFoundException => Iterator.empty }

  override def status(path: Path): Option[FileStatus] =
    try Some(path.getFileSystem(conf).getFileStatus(path))
    catch { case _: java.io.FileNotFoundException => None }

  override def delete(path: Path): Boolean = path.getFileSystem(conf).delete(path, false)
}

/** A read-only store, for file systems without a known way to create a file only if it is absent. */
private[log] final class ReadOnlyLogStore(conf: Configuration) extends HadoopLogStore(conf) {

  override def requireWritable(path: Path): Unit = refuse(path)

  override protected def create(path: Path, guard: Option[() => Unit])(
      write: OutputStream => Unit
  ): WriteOutcome = refuse(path)

  override def makeDirectory(path: Path): Unit = refuse(path)

  override def replace(path: Path, content: Array[Byte]): Unit = refuse(path)

  override def delete(path: Path): Boolean = refuse(path)

  private def refuse(path: Path): Nothing =
    throw HadoopLogStore.unsupported(path.getFileSystem(conf), path)
}

private[log] object HadoopLogStore {
  def unsupported(files: FileSystem, path: Path): DeltaicThrowable = DeltaicException(
    "DELTAIC_LOG_STORE_UNSUPPORTED",
    Map("path" -> path.toString, "scheme" -> files.getUri.getScheme)
  )

  def isSame(a: InputStream, b: InputStream): Boolean = {
    var same = true
    var atEnd = false
    while (same && !atEnd) {
      val (left, right) = (a.readNBytes(1 << 16), b.readNBytes(1 << 16))
      same = Arrays.equals(left, right)
      atEnd = left.isEmpty
    }
    same
  }
}
