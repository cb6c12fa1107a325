package io.deltaic.log

import java.io.{FileNotFoundException, IOException, OutputStream}

import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, FileAlreadyExistsException, FileSystem, Path}

import io.deltaic.protocol.DeltaicThrowable

/**
 * A store on an object store: a file appears, complete, when its stream is closed, and the service refuses it if the
 * name exists. Nothing is renamed, because a rename would be a copy.
 *
 * The content is complete before the stream is opened. Closing a stream publishes what was written to it, so a failure
 * while producing the content must not leave a partly written stream open.
 */
private[log] final class ObjectLogStore(conf: Configuration, condition: ObjectLogStore.Condition)
    extends HadoopLogStore(conf) {

  override def requireWritable(path: Path): Unit = condition.require(path.getFileSystem(conf), path)

  override protected def create(path: Path, guard: Option[() => Unit])(
      write: OutputStream => Unit
  ): WriteOutcome = {
    val files = path.getFileSystem(conf)
    // An early check that saves writing the content; the condition decides.
    if (files.exists(path)) WriteOutcome.AlreadyExists
    else
      Using.resource(new SpillableBuffer) { content =>
        prepare(path) {
          if (guard.isDefined) requireDirectory(files, path.getParent)
          write(content)
        }
        guard.foreach(check => check())
        put(files, path, content)
      }
  }

  override def makeDirectory(path: Path): Unit = {
    val files = path.getFileSystem(conf)
    requireDirectory(files, path.getParent)
    files.mkdirs(path)
    ()
  }

  override def replace(path: Path, content: Array[Byte]): Unit = {
    val files = path.getFileSystem(conf)
    prepare(path)(requireDirectory(files, path.getParent))
    val out = files.create(path, true)
    send(out)(out.write(content))
    out.close()
  }

  /** Object stores have no real directories, but another file must not make a deleted table reappear. */
  private def requireDirectory(files: FileSystem, directory: Path): Unit =
    if (!files.exists(directory)) throw new FileNotFoundException(directory.toString)

  private def put(files: FileSystem, path: Path, content: SpillableBuffer): WriteOutcome =
    try {
      val out = prepare(path) {
        val opened = condition.open(files, path)
        send(opened) {
          Using.resource(content.open())(_.transferTo(opened))
          ()
        }
        opened
      }
      try {
        out.close()
        WriteOutcome.Written
      } catch { case NonFatal(e) => outcomeOf(files, path, content, e) }
    } catch { case e: DeltaicThrowable if alreadyExists(e) => WriteOutcome.AlreadyExists }

  /** Some file systems check the name when the stream is opened. */
  private def alreadyExists(e: DeltaicThrowable): Boolean =
    e.getCause.isInstanceOf[FileAlreadyExistsException]

  private def send(out: FSDataOutputStream)(write: => Unit): Unit =
    try write
    catch {
      case e: Throwable =>
        try {
          out.abort()
          ()
        } catch { case NonFatal(other) => e.addSuppressed(other) }
        throw e
    }

  /**
   * A file system repeats a request whose reply was lost, and then finds the file that the first request wrote. No two
   * writers write the same content, so the content shows whose file it is. If there is no file, it may still appear:
   * the outcome is unknown.
   */
  private def outcomeOf(
      files: FileSystem,
      path: Path,
      content: SpillableBuffer,
      failure: Throwable
  ): WriteOutcome =
    try
      if (Using.resources(files.open(path), content.open())(HadoopLogStore.isSame))
        WriteOutcome.Written
      else WriteOutcome.AlreadyExists
    catch {
      case NonFatal(e) =>
        failure.addSuppressed(e)
        throw failure
    }
}

private[log] object ObjectLogStore {

  /** How a file system is asked not to overwrite an object. */
  sealed trait Condition {
    def open(files: FileSystem, path: Path): FSDataOutputStream

    /** Fails if the file system would not honor it. */
    def require(files: FileSystem, path: Path): Unit
  }

  /** S3A of Hadoop 3.5 sends `If-None-Match: *` with the put; a version that does not support the option rejects it. */
  case object ConditionalPut extends Condition {
    private val Option = "fs.option.create.conditional.overwrite"

    override def open(files: FileSystem, path: Path): FSDataOutputStream =
      try files.createFile(path).create().overwrite(false).must(Option, true).build()
      catch {
        case e: IllegalArgumentException => throw new IOException(e.getMessage, e)
      }

    override def require(files: FileSystem, path: Path): Unit =
      if (!files.hasPathCapability(path, Option)) throw HadoopLogStore.unsupported(files, path)
  }

  /** Google's connector asks the service not to replace an object, unless overwriting is requested. */
  case object CreateIfAbsent extends Condition {
    override def open(files: FileSystem, path: Path): FSDataOutputStream = files.create(path, false)
    override def require(files: FileSystem, path: Path): Unit = ()
  }
}
