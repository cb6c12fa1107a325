package io.deltaic.spark.util

import java.nio.charset.Charset
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{
  DirectoryIteratorException,
  Files,
  NoSuchFileException,
  NotDirectoryException,
  Path => LocalPath,
  Paths
}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

/**
 * Files of the local file system by Java's own calls: Hadoop also reads the status of each file that it lists or deletes.
 *
 * A qualified path is local by its scheme. The class of the file system is no sign: with Hive it is another one.
 */
private[spark] object LocalFiles {

  def isLocal(path: Path): Boolean = path.toUri.getScheme == "file"

  def of(path: Path): LocalPath = Paths.get(path.toUri.getPath)

  /** The result of `read` for the entries of a directory, in no order; for none if there is no such directory. */
  def entries[A](directory: Path)(read: Iterator[LocalPath] => A): A =
    open(directory).fold(read(Iterator.empty)) { stream =>
      try read(stream.iterator.asScala)
      catch { case e: DirectoryIteratorException => throw e.getCause }
      finally stream.close()
    }

  /**
   * Whether a name in a directory has the characters that its writer gave it. Java decodes names by the locale: if that is
   * not UTF-8, a name with other characters than ASCII may be read as another name.
   */
  def isExact(name: String): Boolean = namesAreUtf8 || name.forall(_ < 128)

  private val namesAreUtf8 = Charset.forName(System.getProperty("sun.jnu.encoding")) == UTF_8

  private def open(directory: Path): Option[java.nio.file.DirectoryStream[LocalPath]] =
    try Some(Files.newDirectoryStream(of(directory)))
    catch { case _: NoSuchFileException | _: NotDirectoryException => None }
}
