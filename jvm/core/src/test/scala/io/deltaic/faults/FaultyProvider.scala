package io.deltaic.faults

import java.net.URI
import java.nio.channels.{FileChannel, SeekableByteChannel}
import java.nio.file._
import java.nio.file.attribute._
import java.nio.file.spi.FileSystemProvider
import java.util.{Iterator => JIterator, Map => JMap, Set => JSet}

/**
 * The local disk behind `java.nio.file`, with [[Faults]]. With the system property
 * `java.nio.file.spi.DefaultFileSystemProvider`, it serves every path of the JVM.
 */
final class FaultyProvider(real: FileSystemProvider) extends FileSystemProvider {
  import FaultyPath.real_

  private val system = new FaultySystem(real.getFileSystem(URI.create("file:///")), this)

  private def wrapped(path: Path): Path = system.wrapped(path)

  override def getScheme: String = real.getScheme
  override def newFileSystem(uri: URI, env: JMap[String, _]): FileSystem =
    real.newFileSystem(uri, env)
  override def getFileSystem(uri: URI): FileSystem = { real.getFileSystem(uri); system }
  override def getPath(uri: URI): Path = wrapped(real.getPath(uri))

  override def newByteChannel(
      path: Path,
      options: JSet[_ <: OpenOption],
      attributes: FileAttribute[_]*
  ): SeekableByteChannel =
    if (FaultyProvider.writes(options)) newFileChannel(path, options, attributes: _*)
    else Faults.around("open", path.toString)(real.newByteChannel(
      real_(path),
      options,
      attributes: _*
    ))

  override def newFileChannel(
      path: Path,
      options: JSet[_ <: OpenOption],
      attributes: FileAttribute[_]*
  ): FileChannel = {
    val operation = if (FaultyProvider.writes(options)) "create" else "open"
    Faults.around(operation, path.toString) {
      new FaultyChannel(real.newFileChannel(real_(path), options, attributes: _*), path.toString)
    }
  }

  override def newDirectoryStream(
      path: Path,
      filter: DirectoryStream.Filter[_ >: Path]
  ): DirectoryStream[Path] = Faults.around("list", path.toString) {
    val all = real.newDirectoryStream(real_(path), (p: Path) => filter.accept(wrapped(p)))
    new DirectoryStream[Path] {
      override def iterator: JIterator[Path] = FaultyPath.each(all.iterator, wrapped)
      override def close(): Unit = all.close()
    }
  }

  override def createDirectory(path: Path, attributes: FileAttribute[_]*): Unit =
    Faults.around("mkdir", path.toString, ()) {
      real.createDirectory(real_(path), attributes: _*)
    }

  override def createLink(link: Path, existing: Path): Unit =
    Faults.around("link", link.toString, ())(real.createLink(real_(link), real_(existing)))

  override def createSymbolicLink(
      link: Path,
      target: Path,
      attributes: FileAttribute[_]*
  ): Unit = real.createSymbolicLink(real_(link), real_(target), attributes: _*)

  override def readSymbolicLink(link: Path): Path = wrapped(real.readSymbolicLink(real_(link)))

  override def delete(path: Path): Unit =
    Faults.around("delete", path.toString, ())(real.delete(real_(path)))

  override def copy(from: Path, to: Path, options: CopyOption*): Unit =
    real.copy(real_(from), real_(to), options: _*)

  override def move(from: Path, to: Path, options: CopyOption*): Unit =
    Faults.around("move", to.toString, ())(real.move(real_(from), real_(to), options: _*))

  override def isSameFile(a: Path, b: Path): Boolean = real.isSameFile(real_(a), real_(b))
  override def isHidden(path: Path): Boolean = real.isHidden(real_(path))
  override def getFileStore(path: Path): FileStore = real.getFileStore(real_(path))
  override def checkAccess(path: Path, modes: AccessMode*): Unit =
    real.checkAccess(real_(path), modes: _*)

  override def getFileAttributeView[V <: FileAttributeView](
      path: Path,
      view: Class[V],
      options: LinkOption*
  ): V = real.getFileAttributeView(real_(path), view, options: _*)

  override def readAttributes[A <: BasicFileAttributes](
      path: Path,
      attributes: Class[A],
      options: LinkOption*
  ): A = Faults.around("status", path.toString) {
    real.readAttributes(real_(path), attributes, options: _*)
  }

  override def readAttributes(
      path: Path,
      attributes: String,
      options: LinkOption*
  ): JMap[String, Object] = real.readAttributes(real_(path), attributes, options: _*)

  override def setAttribute(
      path: Path,
      attribute: String,
      value: Object,
      options: LinkOption*
  ): Unit = real.setAttribute(real_(path), attribute, value, options: _*)
}

private object FaultyProvider {
  import StandardOpenOption._

  def writes(options: JSet[_ <: OpenOption]): Boolean =
    Seq(WRITE, APPEND, CREATE, CREATE_NEW).exists(options.contains(_))
}
