package io.deltaic.faults

import java.io.OutputStream
import java.net.URI
import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.fs.{
  DelegateToFileSystem,
  FSDataInputStream,
  FileStatus,
  LocalFileSystem,
  Path,
  RawLocalFileSystem,
  Syncable
}

/** The local disk behind Hadoop's interface, with [[Faults]]. */
class FaultyDisk extends RawLocalFileSystem {

  override protected def createOutputStream(file: Path, append: Boolean): OutputStream =
    Faults.around("create", file.toString) {
      new FaultyStream(super.createOutputStream(file, append), file)
    }

  override protected def createOutputStreamWithMode(
      file: Path,
      append: Boolean,
      permission: FsPermission
  ): OutputStream = Faults.around("create", file.toString) {
    new FaultyStream(super.createOutputStreamWithMode(file, append, permission), file)
  }

  /**
   * The local disk would replace the target; HDFS guarantees not to. But a batch that is run again replaces its files of
   * state: on HDFS, Spark renames these by another API.
   */
  override def rename(from: Path, to: Path): Boolean = Faults.around("rename", to.toString, true) {
    if (getFileStatus(from).isDirectory || to.toString.contains("/checkpoint/state/"))
      super.rename(from, to)
    else {
      Files.createLink(pathToFile(to).toPath, pathToFile(from).toPath)
      Files.delete(pathToFile(from).toPath)
      true
    }
  }

  override def delete(path: Path, recursive: Boolean): Boolean =
    Faults.around("delete", path.toString, true)(super.delete(path, recursive))

  override def open(file: Path, bufferSize: Int): FSDataInputStream =
    Faults.around("open", file.toString)(super.open(file, bufferSize))

  override def listStatus(path: Path): Array[FileStatus] =
    Faults.around("list", path.toString, Array.empty[FileStatus])(super.listStatus(path))

  override def mkdirs(path: Path): Boolean =
    Faults.around("mkdir", path.toString, true)(super.mkdirs(path))
}

/** Writes are not buffered. */
private final class FaultyStream(out: OutputStream, file: Path)
    extends OutputStream with Syncable {

  override def write(byte: Int): Unit = write(Array(byte.toByte), 0, 1)

  override def write(bytes: Array[Byte], offset: Int, length: Int): Unit =
    Faults.around("write", file.toString, ())(out.write(bytes, offset, length))

  override def flush(): Unit = out.flush()

  override def hflush(): Unit = out.flush()

  override def hsync(): Unit = Faults.around("force", file.toString, ()) {
    out match {
      case s: Syncable => s.hsync()
      case other => other.flush()
    }
  }

  override def close(): Unit = Faults.around("close", file.toString, out.close())(out.close())
}

/** `file:` with [[Faults]], for `fs.file.impl`. */
class FaultyLocalFileSystem extends LocalFileSystem(new FaultyDisk)

/** The local disk with a scheme without a default store, for `fs.faulty.impl`. */
class FaultySchemeFileSystem extends FaultyDisk {
  override def getUri: URI = URI.create("faulty:///")
  override def getScheme: String = "faulty"
}

/** The same for `fs.AbstractFileSystem.faulty.impl`. */
class FaultyContext(uri: URI, conf: Configuration)
    extends DelegateToFileSystem(uri, new FaultySchemeFileSystem, conf, "faulty", false)
