package io.deltaic.log

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, InputStream, OutputStream}
import java.nio.file.{Files, Path => LocalPath}

/**
 * Buffers the complete content of a file before it is sent: in memory while it is small, then in a local temporary
 * file.
 */
private[deltaic] final class SpillableBuffer extends OutputStream {
  import SpillableBuffer._

  private val memory = new Memory
  private var length = 0L
  private var file = Option.empty[LocalPath]
  private var out: OutputStream = memory

  override def write(byte: Int): Unit = {
    spillIfNeeded(1)
    out.write(byte)
    length += 1
  }

  override def write(bytes: Array[Byte], offset: Int, count: Int): Unit = {
    spillIfNeeded(count)
    out.write(bytes, offset, count)
    length += count
  }

  /** The number of bytes that have been written. */
  def size: Long = length

  /** The content from an offset on, after all of it is written. */
  def open(from: Long = 0): InputStream = {
    out.flush()
    file.fold[InputStream](memory.open(from.toInt)) { path =>
      val in = Files.newInputStream(path)
      in.skipNBytes(from)
      in
    }
  }

  /** For a buffer that may be open when the JVM ends. */
  def deleteOnExit(): Unit = file.foreach(_.toFile.deleteOnExit())

  override def close(): Unit = {
    out.close()
    file.foreach(Files.deleteIfExists)
  }

  private def spillIfNeeded(length: Int): Unit =
    if (file.isEmpty && memory.size.toLong + length > MemoryBytes) {
      val created = Files.createTempFile("deltaic-log-", ".tmp")
      file = Some(created)
      out = new java.io.BufferedOutputStream(Files.newOutputStream(created), 1 << 16)
      memory.writeTo(out)
      memory.reset()
    }
}

private[deltaic] object SpillableBuffer {

  /** Larger than nearly every commit, and small compared with the heap. */
  private val MemoryBytes = 16L << 20

  /** Its content is read without a copy. */
  private final class Memory extends ByteArrayOutputStream {
    def open(from: Int): InputStream = new ByteArrayInputStream(buf, from, count - from)
  }
}
