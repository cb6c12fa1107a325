package io.deltaic.faults

import java.lang.{Iterable => JIterable}
import java.net.URI
import java.nio.channels.{FileChannel, FileLock, ReadableByteChannel, WritableByteChannel}
import java.nio.file._
import java.nio.file.attribute.UserPrincipalLookupService
import java.nio.file.spi.FileSystemProvider
import java.nio.{ByteBuffer, MappedByteBuffer}
import java.util.{Iterator => JIterator, Set => JSet}

/** The file system of [[FaultyProvider]], whose paths belong to it. */
private[faults] final class FaultySystem(real: FileSystem, owner: FileSystemProvider)
    extends FileSystem {

  def wrapped(path: Path): Path = if (path == null) null else new FaultyPath(this, path)

  override def provider: FileSystemProvider = owner
  override def close(): Unit = real.close()
  override def isOpen: Boolean = real.isOpen
  override def isReadOnly: Boolean = real.isReadOnly
  override def getSeparator: String = real.getSeparator
  override def getFileStores: JIterable[FileStore] = real.getFileStores
  override def supportedFileAttributeViews: JSet[String] = real.supportedFileAttributeViews
  override def getPath(first: String, more: String*): Path = wrapped(real.getPath(first, more: _*))
  override def getUserPrincipalLookupService: UserPrincipalLookupService =
    real.getUserPrincipalLookupService
  override def newWatchService(): WatchService = real.newWatchService()

  override def getRootDirectories: JIterable[Path] =
    () => FaultyPath.each(real.getRootDirectories.iterator, wrapped)

  override def getPathMatcher(pattern: String): PathMatcher = {
    val matcher = real.getPathMatcher(pattern)
    (path: Path) => matcher.matches(FaultyPath.real_(path))
  }
}

private[faults] final class FaultyPath(system: FaultySystem, private val path: Path) extends Path {
  import FaultyPath.real_

  private def wrapped(other: Path): Path = system.wrapped(other)

  override def getFileSystem: FileSystem = system
  override def isAbsolute: Boolean = path.isAbsolute
  override def getRoot: Path = wrapped(path.getRoot)
  override def getFileName: Path = wrapped(path.getFileName)
  override def getParent: Path = wrapped(path.getParent)
  override def getNameCount: Int = path.getNameCount
  override def getName(index: Int): Path = wrapped(path.getName(index))
  override def subpath(begin: Int, end: Int): Path = wrapped(path.subpath(begin, end))
  override def startsWith(other: Path): Boolean = path.startsWith(real_(other))
  override def endsWith(other: Path): Boolean = path.endsWith(real_(other))
  override def normalize(): Path = wrapped(path.normalize())
  override def resolve(other: Path): Path = wrapped(path.resolve(real_(other)))
  override def relativize(other: Path): Path = wrapped(path.relativize(real_(other)))
  override def toUri: URI = path.toUri
  override def toAbsolutePath: Path = wrapped(path.toAbsolutePath)
  override def toRealPath(options: LinkOption*): Path = wrapped(path.toRealPath(options: _*))
  override def register(
      watcher: WatchService,
      events: Array[WatchEvent.Kind[_]],
      modifiers: WatchEvent.Modifier*
  ): WatchKey = path.register(watcher, events, modifiers: _*)
  override def compareTo(other: Path): Int = path.compareTo(real_(other))
  override def equals(other: Any): Boolean = other match {
    case p: FaultyPath => p.path == path
    case _ => false
  }
  override def hashCode: Int = path.hashCode
  override def toString: String = path.toString
}

private[faults] object FaultyPath {

  def real_(path: Path): Path = path match {
    case wrapped: FaultyPath => wrapped.path
    case other => other
  }

  def each(paths: JIterator[Path], wrap: Path => Path): JIterator[Path] = new JIterator[Path] {
    override def hasNext: Boolean = paths.hasNext
    override def next(): Path = wrap(paths.next())
  }
}

private[faults] final class FaultyChannel(real: FileChannel, path: String) extends FileChannel {

  private def writing[A](lie: => A)(write: => A): A = Faults.around("write", path, lie)(write)

  override def write(from: ByteBuffer): Int = writing {
    val length = from.remaining
    from.position(from.limit)
    length
  }(real.write(from))
  override def write(from: Array[ByteBuffer], offset: Int, length: Int): Long =
    writing(0L)(real.write(from, offset, length))
  override def write(from: ByteBuffer, position: Long): Int =
    writing(0)(real.write(from, position))
  override def force(metadata: Boolean): Unit =
    Faults.around("force", path, ())(real.force(metadata))
  override protected def implCloseChannel(): Unit =
    Faults.around("close", path, real.close())(real.close())

  override def read(to: ByteBuffer): Int = real.read(to)
  override def read(to: Array[ByteBuffer], offset: Int, length: Int): Long =
    real.read(to, offset, length)
  override def read(to: ByteBuffer, position: Long): Int = real.read(to, position)
  override def position: Long = real.position
  override def position(to: Long): FileChannel = { real.position(to); this }
  override def size: Long = real.size
  override def truncate(size: Long): FileChannel = { real.truncate(size); this }
  override def transferTo(from: Long, count: Long, to: WritableByteChannel): Long =
    real.transferTo(from, count, to)
  override def transferFrom(from: ReadableByteChannel, position: Long, count: Long): Long =
    real.transferFrom(from, position, count)
  override def map(mode: FileChannel.MapMode, position: Long, size: Long): MappedByteBuffer =
    real.map(mode, position, size)
  override def lock(position: Long, size: Long, shared: Boolean): FileLock =
    real.lock(position, size, shared)
  override def tryLock(position: Long, size: Long, shared: Boolean): FileLock =
    real.tryLock(position, size, shared)
}
