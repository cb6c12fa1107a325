package io.deltaic.spark.write.files

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.ParquetWriter
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.spark.sql.catalyst.InternalRow

import io.deltaic.protocol.AddFile
import io.deltaic.spark.schema.PartitionPaths
import io.deltaic.spark.write.parquet.{CountingOutputFile, FirstRows, ParquetRowWriter}

/** A complete data file that no commit has added yet. */
private[deltaic] final case class WrittenFile(
    addFile: AddFile,
    relativePath: String,
    numRecords: Long
)

/**
 * Writes the data columns of rows to one Parquet file, directly to its final path: the file is visible
 * only after a commit adds it, so it needs no rename.
 *
 * @param relativePath    from the table's root, not URI-encoded
 * @param partitionValues by column, as the log spells them
 * @param withoutDictionary the columns, by their paths in the file, for which no dictionary is tried
 */
private[write] final class DataFileWriter private (
    spec: DataWriteSpec,
    relativePath: String,
    partitionValues: Map[String, String],
    withoutDictionary: Set[String]
) {
  private[write] val output: CountingOutputFile =
    new CountingOutputFile(spec.absolutePath(relativePath), spec.hadoopConf)

  /** None once Parquet's writer is open. */
  private var firstRows: Option[FirstRows] =
    Option.when(spec.shredsVariants)(new FirstRows(spec.fileColumns))
  private var parquet: ParquetWriter[InternalRow] =
    if (firstRows.isEmpty) open(spec.hadoopConf) else null
  private var records = 0L

  private def open(conf: Configuration): ParquetWriter[InternalRow] =
    try ParquetRowWriter.open(output, conf, withoutDictionary)
    catch { case e: Throwable => output.abort(); throw e }

  /** @param row the data columns only, in the order of the schema */
  def write(row: InternalRow): Unit = {
    if (parquet != null) parquet.write(row)
    else {
      firstRows.foreach(_.add(row))
      if (firstRows.exists(_.areEnough)) openWithFirstRows()
    }
    records += 1
  }

  private def openWithFirstRows(): Unit = firstRows.foreach { rows =>
    parquet = open(rows.configure(spec.hadoopConf))
    rows.foreach(parquet.write)
    firstRows = None
  }

  def numRecords: Long = records

  /** The footer of the closed file. */
  def footer: ParquetMetadata = parquet.getFooter

  /** The size of the closed file's data before compression. */
  def decodedBytes: Long = footer.getBlocks.asScala.map(_.getTotalByteSize).sum

  def close(): WrittenFile = {
    openWithFirstRows()
    parquet.close()
    val add = AddFile(
      path = PartitionPaths.logPath(relativePath),
      partitionValues = partitionValues,
      sizeBytes = output.sizeBytes,
      modificationTimeMs = System.currentTimeMillis(),
      dataChange = true,
      stats = Some(FileStatistics.json(footer, spec.statistics)),
      tags = spec.tags
    )
    WrittenFile(add, relativePath, records)
  }

  /** Deletes the file, closed or not. */
  def abort(): Unit = output.abort()
}

private[write] object DataFileWriter {

  /**
   * Opens a new file of a partition.
   *
   * @param taskPartition the number of the task, which is in the file's name
   * @param partitionValues as the log spells them, in the order of the partition columns
   * @param withoutDictionary see [[DataFileWriter]]
   */
  def open(
      spec: DataWriteSpec,
      taskPartition: Int,
      partitionValues: Seq[String],
      withoutDictionary: Set[String] = Set.empty
  ): DataFileWriter = new DataFileWriter(
    spec,
    spec.newRelativePath(taskPartition, partitionValues),
    spec.partitionNames.toSeq.zip(partitionValues).toMap,
    withoutDictionary
  )
}
