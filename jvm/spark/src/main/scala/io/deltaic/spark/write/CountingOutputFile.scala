package io.deltaic.spark.write

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, FileSystem, Path, StreamCapabilities}
import org.apache.parquet.io.{DelegatingPositionOutputStream, OutputFile, PositionOutputStream}

/**
 * A Parquet file that knows its own size when it is closed, so that nobody asks the file system again, and that can be
 * given up without finishing it.
 */
private[write] final class CountingOutputFile(path: Path, conf: Configuration) extends OutputFile {
  private val fileSystem: FileSystem = path.getFileSystem(conf)
  private var stream: FSDataOutputStream = _
  private var closedSizeBytes = -1L

  /** The size of the closed file. */
  def sizeBytes: Long = {
    require(closedSizeBytes >= 0, s"$path is not closed")
    closedSizeBytes
  }

  /** Closes the file as it is, or drops it where the store can, and deletes what is left. */
  def abort(): Unit =
    try {
      if (stream != null && closedSizeBytes < 0) {
        if (stream.hasCapability(StreamCapabilities.ABORTABLE_STREAM)) stream.abort()
        else stream.close()
      }
    } finally fileSystem.delete(path, false)

  override def create(blockSizeHint: Long): PositionOutputStream = open(overwrite = false)

  override def createOrOverwrite(blockSizeHint: Long): PositionOutputStream = open(overwrite = true)

  private def open(overwrite: Boolean): PositionOutputStream = {
    stream = fileSystem.create(path, overwrite)
    new DelegatingPositionOutputStream(stream) {
      override def getPos: Long = stream.getPos
      override def close(): Unit = {
        val size = stream.getPos
        super.close()
        closedSizeBytes = size
      }
    }
  }

  override def supportsBlockSize(): Boolean =
    !CountingOutputFile.SchemesWithoutBlocks.contains(fileSystem.getUri.getScheme)

  override def defaultBlockSize(): Long = fileSystem.getDefaultBlockSize(path)

  override def getPath: String = path.toString
}

private object CountingOutputFile {

  /** File systems that report a block size which means nothing for the layout of a file. */
  private val SchemesWithoutBlocks = Set("file", "s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs")
}
