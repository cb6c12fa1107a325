package io.deltaic.log

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, InputStream, OutputStream}
import java.nio.file.{Files, Path => LocalPath}

/**
 * What a file is to hold, complete before any of it is sent: in memory while it is small, then in this machine's temporary
 * directory.
 */
private[log] final class Spool extends OutputStream {
  import Spool.MemoryBytes

  private val memory = new ByteArrayOutputStream
  private var file = Option.empty[LocalPath]
  private var out: OutputStream = memory

  override def write(byte: Int): Unit = {
    makeRoom(1)
    out.write(byte)
  }

  override def write(bytes: Array[Byte], offset: Int, length: Int): Unit = {
    makeRoom(length)
    out.write(bytes, offset, length)
  }

  /** The content, once all of it is written. */
  def open(): InputStream = {
    out.flush()
    file.fold[InputStream](new ByteArrayInputStream(memory.toByteArray))(Files.newInputStream(_))
  }

  override def close(): Unit = {
    out.close()
    file.foreach(Files.deleteIfExists)
  }

  private def makeRoom(length: Int): Unit =
    if (file.isEmpty && memory.size.toLong + length > MemoryBytes) {
      val created = Files.createTempFile("deltaic-log-", ".tmp")
      file = Some(created)
      out = new java.io.BufferedOutputStream(Files.newOutputStream(created), 1 << 16)
      memory.writeTo(out)
      memory.reset()
    }
}

private[log] object Spool {

  /** More than nearly every commit, and less than anyone would miss. */
  private val MemoryBytes = 16L << 20
}
