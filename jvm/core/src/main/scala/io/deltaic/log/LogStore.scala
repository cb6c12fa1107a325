package io.deltaic.log

import java.io.{ByteArrayInputStream, IOException, InputStream, OutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/** How an attempt to create a log file ended. That another writer was first is an answer, not a failure. */
sealed trait WriteOutcome

object WriteOutcome {
  case object Written extends WriteOutcome
  case object AlreadyExists extends WriteOutcome
}

/**
 * Reads and creates the files of a log. What a store promises, and optimistic concurrency rests on:
 *
 *   - a file appears under its name complete or not at all;
 *   - of several writers that create the same name, exactly one gets [[WriteOutcome.Written]], and its content stays
 *     (Protocol § Creation of New Log Entries);
 *   - a file is listed as soon as it exists.
 *
 * An exception from `writeIfAbsent` means that it is unknown or certain to have failed, never that it succeeded silently
 * with other content.
 */
trait LogStore {

  /** The whole content. Fails with `java.io.FileNotFoundException` when there is no such file. */
  def read(path: Path): Array[Byte]

  /**
   * The content, for the caller to close, for files that may be too large to lie in memory as a whole. Fails as `read`
   * does.
   */
  def open(path: Path): InputStream = new ByteArrayInputStream(read(path))

  /**
   * The files whose names are `firstName` or sort after it, in ascending order of names. Empty when there is no such
   * directory.
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

  /** The same of a file that only makes sense beside what is there, as of the other `writeBesideIfAbsent`. */
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
   * Creates a file that only makes sense beside what is there, with what is written to the stream, which stays open,
   * unless it exists. Makes no directory: where there is none, the table is gone, and must not come back.
   *
   * @param guard throws if the file must not appear; asked when it is complete, right before it gets its name
   */
  final def writeBesideIfAbsent(path: Path, guard: () => Unit)(
      write: OutputStream => Unit
  ): WriteOutcome = create(path, Some(guard))(write)

  /** Makes a directory unless it exists; fails if there is none above it. */
  def makeDirectory(path: Path): Unit

  /**
   * Makes this the content of the file, whether it exists or not; a reader sees the old one or the new one. Fails if its
   * directory is missing.
   */
  def replace(path: Path, content: Array[Byte]): Unit

  /** Deletes a file; whether it was there. */
  def delete(path: Path): Boolean

  /** Fails if this store cannot create files, before there is anything that would be lost. */
  def requireWritable(path: Path): Unit = ()

  /** @param guard if there is one, as of `writeBesideIfAbsent`; then no directory is made either */
  protected def create(path: Path, guard: Option[() => Unit])(
      write: OutputStream => Unit
  ): WriteOutcome

  /**
   * Runs what comes before the file gets its name. A failure here is certain: the caller may clean up after a commit that
   * did not happen, which it must not do when only the reply was lost.
   */
  protected def prepare[A](path: Path)(step: => A): A =
    try step
    catch {
      case e: IOException => throw writeFailed(path, e)
    }

  /** A failure that is certain. */
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

/** Reading through a Hadoop file system, which every store but the local one does alike. */
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

/** A store that knows no way to create a file only if it is absent, and so refuses to. */
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
