package io.deltaic.dv

import java.io.{EOFException, FileNotFoundException}
import java.nio.ByteBuffer
import java.util.UUID
import java.util.zip.CRC32

import scala.util.control.NonFatal
import scala.util.{Success, Try, Using}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{ChecksumException, FSDataInputStream, FileSystem, Path}
import org.apache.hadoop.util.functional.FutureIO

import io.deltaic.protocol.{DeletionVectorDescriptor, DeltaicException, DeltaicThrowable, Z85}

/**
 * Reads and writes deletion vectors in every storage type of the protocol (Protocol § Deletion
 * Vector File Storage Format). Thread safe.
 *
 * Any problem with a vector fails the read with an error that names table, data file and vector. A
 * read cannot continue without the vector: deleted rows would reappear.
 */
final class DeletionVectorStore(conf: Configuration) {
  import DeletionVectorStore._

  /**
   * The rows that are deleted from `dataFile`, after checking size, checksum, format and number of
   * rows.
   *
   * A vector in a file costs one positioned read of its own bytes. The file's version byte is read
   * with it where that is free. Elsewhere it is read only to explain why a vector is not readable:
   * size, checksum and magic number already prove that the bytes are a vector of this format, and a
   * second object store request per data file is expensive.
   *
   * @param dataFile path of the data file as spelled in the log; for error messages only
   * @throws DeltaicThrowable DELTAIC_DELETION_VECTOR_DESCRIPTOR_INVALID,
   *   DELTAIC_DELETION_VECTOR_FILE_MISSING, DELTAIC_DELETION_VECTOR_CORRUPT,
   *   DELTAIC_DELETION_VECTOR_FORMAT_UNSUPPORTED or DELTAIC_DELETION_VECTOR_READ_FAILED
   */
  def read(
      table: Path,
      dataFile: String,
      descriptor: DeletionVectorDescriptor
  ): DeletionVector = {
    def invalid(reason: String) = descriptor.invalid(table.toString, dataFile, reason)
    if (descriptor.isInline) {
      val bytes = descriptor.inline.fold(reason => throw invalid(reason), identity)
      val failure = new ReadFailure(table, dataFile, descriptor, location = "the transaction log")
      decode(descriptor, bytes, 0, failure)
    } else {
      val file = descriptor.file(table).fold(reason => throw invalid(reason), identity)
      val failure = new ReadFailure(table, dataFile, descriptor, location = file.toString)
      try readFile(file, descriptor, failure)
      catch {
        case error: DeltaicThrowable => throw error
        case error: FileNotFoundException => throw failure.missing(error)
        case error: EOFException => throw failure.truncated(error)
        case error: ChecksumException => throw failure.corrupt(error.getMessage, error)
        case NonFatal(error) => throw failure.readFailed(error)
      }
    }
  }

  /**
   * The vectors of several data files, each as [[read]] would return it or fail. Vectors that are
   * adjacent in a file are fetched with one read: a commit packs the vectors of many data files
   * into one file, and a request to an object store takes longer than reading the bytes between two
   * vectors.
   *
   * @param wanted data file, as spelled in the log, and its vector
   */
  def readAll(
      table: Path,
      wanted: Seq[(String, DeletionVectorDescriptor)]
  ): Seq[Try[DeletionVector]] = {
    val runs = AdjacentVectors.runs(table, wanted.map(_._2)).filter(_.ordinals.lengthIs > 1)
    val together = runs.flatMap { run =>
      // If this fails, the single reads below report which vector is at fault.
      Try(readRun(table, run, run.ordinals.map(wanted))).toOption.toSeq
        .flatMap(run.ordinals.zip(_))
    }.toMap
    wanted.zipWithIndex.map { case ((dataFile, descriptor), i) =>
      together.get(i).map(Success(_)).getOrElse(Try(read(table, dataFile, descriptor)))
    }
  }

  private def readRun(
      table: Path,
      run: AdjacentVectors,
      wanted: Seq[(String, DeletionVectorDescriptor)]
  ): Seq[DeletionVector] = {
    val bytes = new Array[Byte]((run.end - run.start).toInt)
    Using.resource(open(run.file.getFileSystem(conf), run.file))(_.readFully(run.start, bytes))
    wanted.map { case (dataFile, descriptor) =>
      val failure = new ReadFailure(table, dataFile, descriptor, run.file.toString)
      val offset = descriptor.offset.getOrElse(FirstOffset)
      if (run.start == 0) checkVersion(bytes(0), failure)
      decodeFrame(descriptor, bytes, (offset - run.start).toInt, failure)
    }
  }

  /**
   * A writer of deletion vector files of `table`.
   *
   * @param randomPrefixLength number of random characters in the name of the directory below the
   *   table in which the files are created, so that object stores spread the load; 0 for the table
   *   directory itself
   * @param maxFileBytes the maximum size of a file, unless its first vector alone is larger
   * @param newId returns the UUID of each new file
   */
  def newWriter(
      table: Path,
      randomPrefixLength: Int = 0,
      maxFileBytes: Long = Int.MaxValue,
      newId: () => UUID = () => UUID.randomUUID()
  ): DeletionVectorFileWriter =
    new DeletionVectorFileWriter(table, conf, randomPrefixLength, maxFileBytes, newId)

  /** A descriptor that contains the vector itself, for vectors of a few dozen bytes. */
  def inline(vector: DeletionVector): DeletionVectorDescriptor = inlined(vector)

  private def readFile(
      file: Path,
      descriptor: DeletionVectorDescriptor,
      failure: ReadFailure
  ): DeletionVector = {
    val fs = file.getFileSystem(conf)
    val offset = descriptor.offset.getOrElse(FirstOffset)
    val end = offset.toLong + FrameOverheadBytes + descriptor.sizeBytes
    val start = if (offset <= FreeReadBytes) 0 else offset
    if (end - start > CheckLengthBytes) checkLength(fs, file, end, failure)
    if (end - start > DeletionVector.MaxSerializedBytes) throw failure.tooLarge
    val bytes = new Array[Byte]((end - start).toInt)
    Using.resource(open(fs, file)) { in =>
      in.readFully(start.toLong, bytes)
      if (start == 0) checkVersion(bytes(0), failure)
      try decodeFrame(descriptor, bytes, offset - start, failure)
      catch {
        case error: DeltaicThrowable if start > 0 =>
          checkVersion(readVersion(in), failure, error)
          throw error
      }
    }
  }

  /** Random access: no read-ahead beyond the vector, and no request for the file's status first. */
  private def open(fs: FileSystem, file: Path): FSDataInputStream =
    FutureIO.awaitFuture(
      fs.openFile(file).opt("fs.option.openfile.read.policy", "random").build()
    )

  /** A wrong size in the descriptor must not cause an allocation of gigabytes. */
  private def checkLength(fs: FileSystem, file: Path, needed: Long, failure: ReadFailure): Unit = {
    val found = fs.getFileStatus(file).getLen
    if (found < needed) throw failure.corrupt(s"the file has $found bytes, but $needed are needed")
  }

  private def readVersion(in: FSDataInputStream): Byte = {
    val version = new Array[Byte](1)
    in.readFully(0L, version)
    version(0)
  }

  private def checkVersion(version: Byte, failure: ReadFailure, cause: Throwable = null): Unit =
    if (version != FileVersion) {
      throw failure.unsupported(
        s"the version of the file's format is ${version & 0xff}, not $FileVersion",
        cause
      )
    }

  /** A frame is the form of a vector in a file: size, bitmap, checksum; numbers are big endian. */
  private def decodeFrame(
      descriptor: DeletionVectorDescriptor,
      bytes: Array[Byte],
      start: Int,
      failure: ReadFailure
  ): DeletionVector = {
    val frame = ByteBuffer.wrap(bytes)
    val size = frame.getInt(start)
    if (size != descriptor.sizeBytes) {
      throw failure.corrupt(s"the log says ${descriptor.sizeBytes} bytes, the file says $size")
    }
    val expected = frame.getInt(start + 4 + size)
    val actual = checksum(bytes, start + 4, size)
    if (actual != expected) {
      throw failure.corrupt(f"the checksum is $actual%08x, but the file says $expected%08x")
    }
    decode(descriptor, bytes, start + 4, failure)
  }

  private def decode(
      descriptor: DeletionVectorDescriptor,
      bytes: Array[Byte],
      start: Int,
      failure: ReadFailure
  ): DeletionVector = {
    val vector =
      try DeletionVector.deserialize(bytes, start, descriptor.sizeBytes)
      catch {
        case error: UnknownBitmapFormatException =>
          throw failure.unsupported(error.getMessage, error)
        case error: BitmapFormatException => throw failure.corrupt(error.getMessage, error)
      }
    if (vector.cardinality != descriptor.cardinality) {
      throw failure.corrupt(
        s"the log says ${descriptor.cardinality} rows, the vector has ${vector.cardinality}"
      )
    }
    vector
  }
}

private[dv] object DeletionVectorStore {

  val FileVersion: Byte = 1

  /** A frame's size and checksum. */
  val FrameOverheadBytes: Int = 4 + 4

  /**
   * The first frame follows the version byte. It is the default of a descriptor without an offset.
   */
  val FirstOffset: Int = 1

  /** Starting a read this much earlier costs nothing on any file system. */
  val FreeReadBytes: Int = 4096

  /** Above this size, a request for the file's length is cheap compared with what it may avoid. */
  private val CheckLengthBytes = 4L << 20

  def inlined(vector: DeletionVector): DeletionVectorDescriptor = {
    val bytes = vector.serialize()
    DeletionVectorDescriptor(
      storageType = DeletionVectorDescriptor.Inline,
      pathOrInlineDv = Z85.encode(bytes),
      offset = None,
      sizeBytes = bytes.length,
      cardinality = vector.cardinality
    )
  }

  def checksum(bytes: Array[Byte], start: Int, size: Int): Int = {
    val crc = new CRC32()
    crc.update(bytes, start, size)
    crc.getValue.toInt
  }
}

/** Builds the errors of one read, all of which name the same table, data file and vector. */
private[dv] final class ReadFailure(
    table: Path,
    dataFile: String,
    descriptor: DeletionVectorDescriptor,
    location: String
) {
  def corrupt(reason: String, cause: Throwable = null): DeltaicThrowable =
    build("DELTAIC_DELETION_VECTOR_CORRUPT", reason, cause)

  def truncated(cause: Throwable): DeltaicThrowable =
    corrupt("the file ends before the deletion vector does", cause)

  def unsupported(reason: String, cause: Throwable): DeltaicThrowable =
    build("DELTAIC_DELETION_VECTOR_FORMAT_UNSUPPORTED", reason, cause)

  def tooLarge: DeltaicThrowable =
    unsupported(s"${descriptor.sizeBytes} bytes are more than can be read at once", cause = null)

  def missing(cause: Throwable): DeltaicThrowable = DeltaicException(
    "DELTAIC_DELETION_VECTOR_FILE_MISSING",
    names,
    cause
  )

  def readFailed(cause: Throwable): DeltaicThrowable =
    build("DELTAIC_DELETION_VECTOR_READ_FAILED", cause.toString, cause)

  private def build(condition: String, reason: String, cause: Throwable): DeltaicThrowable =
    DeltaicException(condition, names + ("reason" -> reason), cause)

  private def names: Map[String, String] = Map(
    "table" -> table.toString,
    "dataFile" -> dataFile,
    "deletionVector" -> descriptor.displayId,
    "location" -> location
  )
}
