package io.deltaic.spark.write.parquet

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.CommonConfigurationKeysPublic.{
  IO_FILE_BUFFER_SIZE_DEFAULT,
  IO_FILE_BUFFER_SIZE_KEY
}
import org.apache.hadoop.fs.{FSDataOutputStream, FileSystem, Path, StreamCapabilities}
import org.apache.parquet.io.{DelegatingPositionOutputStream, OutputFile, PositionOutputStream}

/**
 * A Parquet output file that records its size when it is closed, to avoid a request to the file system,
 * and that can be aborted.
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

  /** Closes the file, or aborts it if the store supports that, and deletes what is left of it. */
  def abort(): Unit =
    try
      if (stream != null && closedSizeBytes < 0) {
        if (stream.hasCapability(StreamCapabilities.ABORTABLE_STREAM)) stream.abort()
        else stream.close()
      }
    finally fileSystem.delete(path, false)

  override def create(blockSizeHint: Long): PositionOutputStream =
    open(blockSizeHint, overwrite = false)

  override def createOrOverwrite(blockSizeHint: Long): PositionOutputStream =
    open(blockSizeHint, overwrite = true)

  /** A row group should fit into one block, if the file system has blocks. */
  private def open(blockSizeHint: Long, overwrite: Boolean): PositionOutputStream = {
    stream =
      if (!supportsBlockSize()) fileSystem.create(path, overwrite)
      else {
        fileSystem.create(
          path,
          overwrite,
          fileSystem.getConf.getInt(IO_FILE_BUFFER_SIZE_KEY, IO_FILE_BUFFER_SIZE_DEFAULT),
          fileSystem.getDefaultReplication(path),
          math.max(defaultBlockSize(), blockSizeHint)
        )
      }
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
    CountingOutputFile.SchemesWithBlocks.contains(fileSystem.getUri.getScheme)

  override def defaultBlockSize(): Long = fileSystem.getDefaultBlockSize(path)

  override def getPath: String = path.toString
}

private object CountingOutputFile {

  /**
   * File systems in which the block size determines the placement of a file; others report a meaningless
   * size.
   */
  private val SchemesWithBlocks = Set("hdfs", "webhdfs", "viewfs")
}
