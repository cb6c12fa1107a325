package io.deltaic.dv

import java.util.UUID
import java.util.concurrent.ThreadLocalRandom

import scala.collection.mutable.ListBuffer
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, FileSystem, Path}

import io.deltaic.protocol.{DeletionVectorDescriptor, DeltaicException, DeltaicThrowable}

/**
 * Writes deletion vectors to files that are named by new UUIDs (Protocol § Deletion Vector File
 * Storage Format); for one thread.
 *
 * Each vector is written when it is added, so that at most one is in memory. The first one creates
 * the file: without a vector there is no file. A new file is started where the next offset would
 * not fit into a descriptor.
 *
 * A descriptor may be committed after [[close]] returned. If [[add]] or [[close]] fails, the writer
 * has deleted its files and accepts no more vectors.
 *
 * @param maxFileBytes the maximum size of a file, unless its first vector alone is larger
 * @param newId returns the UUID of each new file
 */
final class DeletionVectorFileWriter private[dv] (
    table: Path,
    conf: Configuration,
    randomPrefixLength: Int,
    maxFileBytes: Long = Int.MaxValue,
    newId: () => UUID = () => UUID.randomUUID()
) extends AutoCloseable {
  import DeletionVectorFileWriter._
  import DeletionVectorStore._

  require(randomPrefixLength >= 0, s"length $randomPrefixLength of the random prefix is negative")

  private var current: Option[OpenFile] = None
  private val created = ListBuffer.empty[Path]
  private var open = true

  /** The files that the descriptors so far reference. */
  def files: Seq[Path] = created.toList

  /**
   * Stores `vector` inline or in a file. A few rows are not worth a separate object and are stored
   * in the log entry, which every reader of the table reads; larger vectors go into a file.
   *
   * @param maxInlineBytes the maximum size of an inline vector
   */
  def place(
      vector: DeletionVector,
      maxInlineBytes: Long = SmallVectorBytes
  ): DeletionVectorDescriptor =
    if (vector.serializedSizeBytes <= maxInlineBytes) inlined(vector)
    else add(vector)

  /**
   * Writes `vector`, in its smallest form.
   *
   * @throws DeltaicThrowable DELTAIC_DELETION_VECTOR_TOO_LARGE if no descriptor can hold its size;
   *   DELTAIC_DELETION_VECTOR_WRITE_FAILED
   */
  def add(vector: DeletionVector): DeletionVectorDescriptor = {
    requireOpen()
    guarded {
      val sizeBytes = vector.serializedSizeBytes
      if (sizeBytes > MaxVectorBytes) throw tooLarge(vector, sizeBytes)
      val bytes = vector.serialize()
      val file = fileFor(FrameOverheadBytes + bytes.length)
      val offset = file.append(bytes)
      DeletionVectorDescriptor(
        storageType = DeletionVectorDescriptor.Relative,
        pathOrInlineDv = file.id,
        offset = Some(offset),
        sizeBytes = bytes.length,
        cardinality = vector.cardinality
      )
    }
  }

  /**
   * Completes the last file. Calling it again does nothing.
   *
   * @throws DeltaicThrowable DELTAIC_DELETION_VECTOR_WRITE_FAILED
   */
  override def close(): Unit = if (open) {
    guarded(closeCurrent())
    open = false
  }

  /**
   * Deletes all files of this writer, also after [[close]]. VACUUM deletes those that cannot be
   * deleted here.
   */
  def abort(): Unit = {
    open = false
    current.foreach(_.abandon())
    current = None
    created.foreach { file =>
      try file.getFileSystem(conf).delete(file, false)
      catch { case NonFatal(_) => () }
    }
    created.clear()
  }

  private def fileFor(frameBytes: Long): OpenFile = {
    if (current.exists(_.position + frameBytes > maxFileBytes)) closeCurrent()
    current.getOrElse {
      val file = create()
      current = Some(file)
      file.begin()
      file
    }
  }

  private def create(): OpenFile = {
    val uuid = newId()
    val prefix = randomPrefix(randomPrefixLength)
    val path = DeletionVectorDescriptor.relativePath(table, prefix, uuid)
    val fs: FileSystem = path.getFileSystem(conf)
    val out = fs.create(path, false)
    created += path
    new OpenFile(DeletionVectorDescriptor.relativeId(prefix, uuid), out)
  }

  private def closeCurrent(): Unit = {
    val file = current
    current = None
    file.foreach(_.close())
  }

  private def guarded[T](write: => T): T =
    try write
    catch {
      case NonFatal(error) =>
        val last = created.lastOption
        abort()
        error match {
          case named: DeltaicThrowable => throw named
          case other => throw writeFailed(last, other)
        }
    }

  private def requireOpen(): Unit =
    if (!open) throw new IllegalStateException(s"the deletion vector writer of $table is closed")

  private def tooLarge(vector: DeletionVector, sizeBytes: Long): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_DELETION_VECTOR_TOO_LARGE",
      Map(
        "table" -> table.toString,
        "sizeBytes" -> sizeBytes.toString,
        "cardinality" -> vector.cardinality.toString,
        "maxSizeBytes" -> MaxVectorBytes.toString
      )
    )

  private def writeFailed(file: Option[Path], cause: Throwable): DeltaicThrowable =
    DeltaicException(
      "DELTAIC_DELETION_VECTOR_WRITE_FAILED",
      Map(
        "table" -> table.toString,
        "location" -> file.fold(table.toString)(_.toString),
        "reason" -> cause.toString
      ),
      cause
    )
}

object DeletionVectorFileWriter {
  import DeletionVectorStore._

  private val SmallVectorBytes = 256L

  /**
   * The maximum size of an inline vector of a commit. All its vectors are inline if they are small
   * together, and small ones always: once there is a file, further vectors in it cost little.
   *
   * @param limit the maximum size of all vectors together; if it is 0, none is inline
   */
  def maxInlineBytes(limit: Long, allBytes: Long): Long =
    if (allBytes <= limit) limit else limit.min(SmallVectorBytes)

  /**
   * The largest vector that [[DeletionVectorStore.read]] can read into one array, with overhead.
   */
  private[dv] val MaxVectorBytes: Int =
    DeletionVector.MaxSerializedBytes - FrameOverheadBytes - FreeReadBytes

  private val PrefixAlphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

  private def randomPrefix(length: Int): String = {
    val random = ThreadLocalRandom.current()
    Seq.fill(length)(PrefixAlphabet.charAt(random.nextInt(PrefixAlphabet.length))).mkString
  }

  /** A file that is being written. `id` is the `pathOrInlineDv` of all its vectors. */
  private final class OpenFile(val id: String, out: FSDataOutputStream) {
    private var nextOffset = 0L

    def position: Long = nextOffset

    def begin(): Unit = {
      out.writeByte(FileVersion.toInt)
      nextOffset = FirstOffset.toLong
    }

    /** Writes one frame, and returns its offset. */
    def append(bytes: Array[Byte]): Int = {
      val offset = nextOffset.toInt
      out.writeInt(bytes.length)
      out.write(bytes)
      out.writeInt(checksum(bytes, 0, bytes.length))
      nextOffset += FrameOverheadBytes + bytes.length
      offset
    }

    def close(): Unit = out.close()

    def abandon(): Unit =
      try out.close()
      catch { case NonFatal(_) => () }
  }
}
