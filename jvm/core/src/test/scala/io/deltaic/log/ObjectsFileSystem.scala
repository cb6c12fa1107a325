package io.deltaic.log

import java.io.{ByteArrayOutputStream, FileNotFoundException, IOException}
import java.net.URI
import java.nio.file.{FileAlreadyExistsException => TakenException, Files}

import org.apache.hadoop.fs.{Abortable, FSDataOutputStream, Path}
import org.apache.hadoop.util.Progressable

import io.deltaic.faults.{Faults, FaultyDisk}

/**
 * The local disk with the behavior of an object store behind Google's connector: a file appears, complete, when its
 * stream is closed, and only then the service reports whether the name existed. No test uses the real service.
 */
class ObjectsFileSystem extends FaultyDisk {

  override def getUri: URI = URI.create("objects:///")
  override def getScheme: String = "objects"

  override def create(
      path: Path,
      overwrite: Boolean,
      bufferSize: Int,
      replication: Short,
      blockSize: Long,
      progress: Progressable
  ): FSDataOutputStream =
    new FSDataOutputStream(new ObjectStream(path, overwrite), null)

  private final class ObjectStream(path: Path, overwrite: Boolean)
      extends ByteArrayOutputStream with Abortable {
    private var open = true

    override def abort(): Abortable.AbortableResult = {
      open = false
      new Abortable.AbortableResult {
        override def alreadyClosed(): Boolean = false
        override def anyCleanupException(): IOException = null
      }
    }

    override def close(): Unit = if (open) {
      open = false
      Faults.at("put", path.toString)(put())
    }

    private def put(): Unit = {
      val target = pathToFile(path).toPath
      Files.createDirectories(target.getParent)
      if (overwrite) Files.write(target, toByteArray): Unit
      else {
        val part = Files.createTempFile(target.getParent.getParent, "part", "")
        Files.write(part, toByteArray)
        try Files.createLink(target, part): Unit
        catch { case _: TakenException => throw new IOException("412 Precondition Failed") }
        finally Files.delete(part)
      }
    }
  }

  override def mkdirs(path: Path): Boolean =
    if (exists(path.getParent)) super.mkdirs(path)
    else throw new FileNotFoundException(path.toString)
}
