package io.deltaic.log

import java.io.{BufferedOutputStream, FileNotFoundException, IOException, InputStream, OutputStream}
import java.nio.channels.{Channels, FileChannel}
import java.nio.file.StandardCopyOption.{ATOMIC_MOVE, REPLACE_EXISTING}
import java.nio.file.StandardOpenOption.{CREATE_NEW, READ, WRITE}
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.{
  FileAlreadyExistsException,
  FileSystemException,
  Files,
  NoSuchFileException,
  NotDirectoryException,
  Path => LocalPath
}

import scala.util.Using

import org.apache.hadoop.fs.{FileStatus, Path}

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}

/**
 * The store on local disks. It writes a temporary file, forces it to disk, and hard-links it to its name. `link` is
 * atomic and fails if the name exists; a rename would replace the file.
 */
private[log] object LocalLogStore extends LogStore {

  override def read(path: Path): Array[Byte] = existing(path)(Files.readAllBytes(_))

  override def open(path: Path): InputStream = existing(path)(Files.newInputStream(_))

  private def existing[A](path: Path)(read: LocalPath => A): A =
    try read(local(path))
    catch { case _: NoSuchFileException => throw new FileNotFoundException(path.toString) }

  /** The status of a file is read when the iterator reaches it: callers may need the first of thousands only. */
  override def listFrom(logDirectory: Path, firstName: String): Iterator[FileStatus] =
    try {
      val names = Array.newBuilder[String]
      Using.resource(Files.newDirectoryStream(local(logDirectory))) { stream =>
        stream.forEach { file =>
          val name = file.getFileName.toString
          if (name >= firstName) names += name
        }
      }
      names.result().sortInPlace().iterator.flatMap(name => status(new Path(logDirectory, name)))
    } catch { case _: NoSuchFileException | _: NotDirectoryException => Iterator.empty }

  /** A file may be deleted after it was listed: log cleanup deletes files at any time. */
  override def status(path: Path): Option[FileStatus] =
    try {
      val of = Files.readAttributes(local(path), classOf[BasicFileAttributes])
      val modified = of.lastModifiedTime.toMillis
      Some(new FileStatus(of.size, of.isDirectory, 1, BlockSizeBytes, modified, path))
    } catch { case _: NoSuchFileException | _: NotDirectoryException => None }

  private val BlockSizeBytes = 32L << 20

  override protected def create(path: Path, guard: Option[() => Unit])(
      write: OutputStream => Unit
  ): WriteOutcome = {
    val target = local(path)
    if (Files.exists(target)) WriteOutcome.AlreadyExists
    else {
      val temporary = local(FileNames.temporary(path))
      try {
        prepare(path) {
          if (guard.isEmpty) Files.createDirectories(target.getParent)
          writeDurably(temporary, write)
          deleteHadoopChecksum(path)
        }
        guard.foreach(check => check())
        val outcome = link(temporary, target)
        forceDirectory(target.getParent)
        outcome
      } finally deleteQuietly(temporary)
    }
  }

  override def makeDirectory(path: Path): Unit =
    try {
      Files.createDirectory(local(path))
      forceDirectory(local(path).getParent)
    } catch { case _: FileAlreadyExistsException => () }

  override def replace(path: Path, content: Array[Byte]): Unit = {
    val temporary = local(FileNames.temporary(path))
    try prepare(path) {
        writeDurably(temporary, _.write(content))
        deleteHadoopChecksum(path)
        Files.move(temporary, local(path), ATOMIC_MOVE, REPLACE_EXISTING)
        // Another writer may have written its own in the meantime.
        deleteHadoopChecksum(path)
        forceDirectory(temporary.getParent)
      }
    finally deleteQuietly(temporary)
  }

  override def delete(path: Path): Boolean = {
    val wasThere = Files.deleteIfExists(local(path))
    deleteHadoopChecksum(path)
    wasThere
  }

  /**
   * Hadoop's local file system, and so delta-spark, stores the checksum of a file `a` in a file `.a.crc`, and refuses
   * to read `a` if the checksum does not match. Without a checksum file it reads any content.
   */
  private def deleteHadoopChecksum(path: Path): Unit = {
    val file = local(path)
    Files.deleteIfExists(file.resolveSibling(s".${file.getFileName}.crc"))
    ()
  }

  /** A leftover file is harmless, and the outcome is already final. */
  private def deleteQuietly(temporary: LocalPath): Unit =
    try {
      Files.deleteIfExists(temporary)
      ()
    } catch { case _: IOException => () }

  private def writeDurably(file: LocalPath, write: OutputStream => Unit): Unit = {
    val channel = FileChannel.open(file, CREATE_NEW, WRITE)
    try {
      val out = new BufferedOutputStream(Channels.newOutputStream(channel), 1 << 16)
      write(out)
      out.flush()
      channel.force(true)
    } finally channel.close()
  }

  private def link(temporary: LocalPath, target: LocalPath): WriteOutcome =
    try {
      Files.createLink(target, temporary)
      if (linkCount(temporary) == 1) uncountedLink(temporary, target) else WriteOutcome.Written
    } catch {
      // On a network file system the reply to a successful link may be lost, and the repeated request then finds that
      // the name exists. The link count shows what happened.
      case _: IOException if linkCount(temporary) == 2 => WriteOutcome.Written
      case _: FileAlreadyExistsException => WriteOutcome.AlreadyExists
      case e: UnsupportedOperationException =>
        throw failed("DELTAIC_HARD_LINK_UNSUPPORTED", "path", target, e)
      // With a count of one there is no link, so the failure is certain; otherwise the outcome is unknown.
      case e: IOException if linkCount(temporary) == 1 =>
        val condition =
          if (forbidsLinks(e)) "DELTAIC_HARD_LINK_UNSUPPORTED" else "DELTAIC_LOG_WRITE_FAILED"
        throw failed(condition, if (forbidsLinks(e)) "path" else "file", target, e)
    }

  /** Some user-space file systems report a link that they have not made; others make it and do not count it. */
  private def uncountedLink(temporary: LocalPath, target: LocalPath): WriteOutcome =
    try
      if (Files.mismatch(temporary, target) < 0) WriteOutcome.Written
      else WriteOutcome.AlreadyExists
    catch {
      case e: NoSuchFileException => throw failed("DELTAIC_LOG_WRITE_FAILED", "file", target, e)
    }

  private def forbidsLinks(e: IOException): Boolean = e match {
    case f: FileSystemException => Option(f.getReason).exists(ForbidsLinks.contains)
    case _ => false
  }

  /** The reasons that systems without hard links give: EPERM, ENOTSUP and EOPNOTSUPP. */
  private val ForbidsLinks =
    Set("Operation not permitted", "Operation not supported", "Not supported")

  private def failed(
      condition: String,
      parameter: String,
      target: LocalPath,
      cause: Exception
  ): DeltaicThrowable = DeltaicException(
    condition,
    Map(parameter -> target.toString, "reason" -> cause.toString),
    cause
  )

  /** -1 if it is unavailable. */
  private def linkCount(file: LocalPath): Int =
    try Files.getAttribute(file, "unix:nlink").asInstanceOf[Int]
    catch { case _: UnsupportedOperationException | _: IOException => -1 }

  /** Makes the new name durable. Some systems cannot open a directory; they do not need this call. */
  private def forceDirectory(directory: LocalPath): Unit =
    try {
      val channel = FileChannel.open(directory, READ)
      try channel.force(true)
      finally channel.close()
    } catch { case _: IOException => () }

  private def local(path: Path): LocalPath = java.nio.file.Paths.get(path.toUri.getPath)
}
