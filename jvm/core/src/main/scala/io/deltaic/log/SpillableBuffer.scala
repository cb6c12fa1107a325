package io.deltaic.log

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, InputStream, OutputStream}
import java.nio.file.{Files, Path => LocalPath}

/**
 * Buffers the complete content of a file before it is sent: in memory while it is small, then in a local temporary
 * file.
 */
private[deltaic] final class SpillableBuffer extends OutputStream {
  import SpillableBuffer.MemoryBytes

  private val memory = new ByteArrayOutputStream
  private var file = Option.empty[LocalPath]
  private var out: OutputStream = memory

  override def write(byte: Int): Unit = {
    spillIfNeeded(1)
    out.write(byte)
  }

  override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
    spillIfNeeded(length)
    out.write(bytes, offset, length)
  }

  /** The content, after all of it is written. */
  def open(): InputStream = {
    out.flush()
    file.fold[InputStream](new ByteArrayInputStream(memory.toByteArray))(Files.newInputStream(_))
  }

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
}
