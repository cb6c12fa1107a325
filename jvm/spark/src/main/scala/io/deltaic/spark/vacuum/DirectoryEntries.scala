package io.deltaic.spark.vacuum

import java.io.{FileNotFoundException, IOException}
import java.nio.file.attribute.BasicFileAttributes
import java.nio.file.{Files, LinkOption, NoSuchFileException}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, LocatedFileStatus, Path}
import org.apache.hadoop.util.functional.RemoteIterators

import io.deltaic.spark.util.LocalFiles

/**
 * An entry of a directory.
 *
 * @param path relative to the listed directory: its name, or more in a recursive listing
 */
private[vacuum] trait DirectoryEntry {
  def path: String
  def isDirectory: Boolean

  /** False for a symbolic link, whose target may be outside of the table. */
  def isFile: Boolean
  def sizeBytes: Long
  def modificationTimeMs: Long
}

/** Lists directories, each in the way that is cheapest on its file system. */
private[vacuum] sealed trait DirectoryEntries {

  /** Calls `visit` with each entry; with none if the directory no longer exists. */
  def foreach(directory: Path)(visit: DirectoryEntry => Unit): Unit

  /** Whether a listing of a directory has all files below it, and no directories. */
  def isRecursive: Boolean = false
}

private[vacuum] object DirectoryEntries {

  /** The listing of a directory. */
  def of(directory: Path, conf: Configuration): DirectoryEntries =
    if (LocalFiles.isLocal(directory)) LocalEntries
    else new HadoopEntries(directory.getFileSystem(conf))

  /** The listing of a directory below the table's own: of all that is below it where the store can list by prefix. */
  def below(directory: Path, conf: Configuration): DirectoryEntries =
    if (LocalFiles.isLocal(directory)) LocalEntries
    else {
      val files = directory.getFileSystem(conf)
      if (listsRecursively(files)) new PrefixEntries(files) else new HadoopEntries(files)
    }

  /**
   * Whether the file system implements a recursive listing itself, which it does to list by prefix: S3A and Aliyun OSS.
   * That of Hadoop's base class lists one directory after the other. So do ABFS and HDFS, whose directories several
   * threads list faster.
   */
  private[vacuum] def listsRecursively(files: FileSystem): Boolean =
    files.getClass.getMethod("listFiles", classOf[Path], java.lang.Boolean.TYPE)
      .getDeclaringClass != classOf[FileSystem]
}

/** Reads the attributes of an entry only if they are needed, since most files are known to be used by their name. */
private object LocalEntries extends DirectoryEntries {

  override def foreach(directory: Path)(visit: DirectoryEntry => Unit): Unit =
    LocalFiles.entries(directory)(_.foreach(file => visit(new LocalEntry(file))))

  private final class LocalEntry(file: java.nio.file.Path) extends DirectoryEntry {
    override val path: String = file.getFileName.toString

    /** None if it was deleted after it was listed, or if its name is not known, so that it stays. */
    private lazy val attributes: Option[BasicFileAttributes] =
      try
        Option.when(LocalFiles.isExact(path))(
          Files.readAttributes(file, classOf[BasicFileAttributes], LinkOption.NOFOLLOW_LINKS)
        )
      catch { case _: NoSuchFileException => None }

    override def isDirectory: Boolean = attributes.exists(_.isDirectory)
    override def isFile: Boolean = attributes.exists(_.isRegularFile)
    override def sizeBytes: Long = attributes.fold(0L)(_.size)
    override def modificationTimeMs: Long =
      attributes.fold(Long.MaxValue)(_.lastModifiedTime.toMillis)
  }
}

private final class StatusEntry(override val path: String, status: FileStatus)
    extends DirectoryEntry {
  override def isDirectory: Boolean = status.isDirectory
  override def isFile: Boolean = status.isFile
  override def sizeBytes: Long = status.getLen
  override def modificationTimeMs: Long = status.getModificationTime
}

private final class HadoopEntries(files: FileSystem) extends DirectoryEntries {
  override def foreach(directory: Path)(visit: DirectoryEntry => Unit): Unit =
    try
      RemoteIterators.foreach[FileStatus](
        files.listStatusIterator(directory),
        status => visit(new StatusEntry(status.getPath.getName, status))
      )
    catch { case _: FileNotFoundException => () }
}

private final class PrefixEntries(files: FileSystem) extends DirectoryEntries {
  override def isRecursive: Boolean = true

  override def foreach(directory: Path)(visit: DirectoryEntry => Unit): Unit = {
    val prefix = directory.toUri.getPath.stripSuffix("/") + "/"
    def relative(status: FileStatus): String = {
      val full = status.getPath.toUri.getPath
      if (!full.startsWith(prefix))
        throw new IOException(s"the listing of $directory has ${status.getPath}")
      full.substring(prefix.length)
    }
    try
      RemoteIterators.foreach[LocatedFileStatus](
        files.listFiles(directory, true),
        status => visit(new StatusEntry(relative(status), status))
      )
    catch { case _: FileNotFoundException => () }
  }
}
