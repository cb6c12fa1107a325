package io.deltaic.spark.write.files

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.column.ParquetProperties
import org.apache.parquet.crypto.EncryptionPropertiesFactory
import org.apache.parquet.hadoop.ParquetFileWriter.Mode
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.hadoop.{ParquetFileWriter, ParquetOutputFormat, ParquetWriter}
import org.apache.spark.sql.deltaic.WriteInternals

import io.deltaic.protocol.{AddFile, LogPath}
import io.deltaic.spark.schema.PartitionPaths
import io.deltaic.spark.util.ParquetFiles
import io.deltaic.spark.write.parquet.CountingOutputFile

/**
 * Joins data files of one write and partition to a new one. Row groups are copied as bytes, with their page
 * indexes and Bloom filters.
 */
private[deltaic] object JoinedFile {

  /** False if the files may be encrypted: the keys of their pages depend on the file. */
  def isPossible(conf: Configuration): Boolean =
    EncryptionPropertiesFactory.loadFactory(conf) == null

  /**
   * @param taskPartition the number of the task, which is in the file's name
   * @param partitionValues as the log spells them, in the order of the partition columns
   * @param parts the files, with statistics
   */
  def write(
      spec: DataWriteSpec,
      taskPartition: Int,
      partitionValues: Seq[String],
      parts: Seq[AddFile]
  ): AddFile = {
    val path = spec.newRelativePath(taskPartition, partitionValues)
    val file = new CountingOutputFile(spec.absolutePath(path), spec.hadoopConf)
    WriteInternals.onFailedTask(() => file.abort())
    try {
      append(spec, file, parts.map(part => LogPath.toAbsolute(new Path(spec.tablePath), part.path)))
      parts.head.copy(
        path = PartitionPaths.logPath(path),
        sizeBytes = file.sizeBytes,
        modificationTimeMs = System.currentTimeMillis(),
        stats = Some(MergedStatistics.json(parts.flatMap(_.stats), spec.statistics))
      )
    } catch {
      case e: Throwable =>
        file.abort()
        throw e
    }
  }

  private def append(spec: DataWriteSpec, file: CountingOutputFile, parts: Seq[Path]): Unit = {
    val inputs = parts.map(HadoopInputFile.fromPath(_, spec.hadoopConf))
    val first = Using.resource(ParquetFiles.open(inputs.head))(_.getFileMetaData)
    val writer = new ParquetFileWriter(
      file,
      first.getSchema,
      Mode.OVERWRITE,
      ParquetOutputFormat.getLongBlockSize(spec.hadoopConf),
      ParquetWriter.MAX_PADDING_SIZE_DEFAULT,
      null, // not encrypted
      ParquetProperties.builder().build()
    )
    try {
      writer.start()
      inputs.foreach(copyRowGroups(_, writer))
      writer.end(first.getKeyValueMetaData)
    } finally writer.close()
  }

  private def copyRowGroups(input: HadoopInputFile, writer: ParquetFileWriter): Unit =
    Using.resources(ParquetFiles.open(input), input.newStream()) { (reader, stream) =>
      val schema = reader.getFileMetaData.getSchema
      reader.getRowGroups.asScala.foreach { rowGroup =>
        writer.startBlock(rowGroup.getRowCount)
        rowGroup.getColumns.asScala.foreach { chunk =>
          writer.appendColumnChunk(
            schema.getColumnDescription(chunk.getPath.toArray),
            stream,
            chunk,
            reader.readBloomFilter(chunk),
            reader.readColumnIndex(chunk),
            reader.readOffsetIndex(chunk)
          )
        }
        writer.endBlock()
      }
    }
}
