package io.deltaic.spark.write.files

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.{ParquetFileWriter, ParquetOutputFormat, ParquetWriter}
import org.apache.parquet.io.OutputFile
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.internal.SQLConf

import io.deltaic.protocol.AddFile
import io.deltaic.spark.schema.PartitionPaths

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
 */
private[deltaic] final class DataFileWriter(
    spec: DataWriteSpec,
    relativePath: String,
    partitionValues: Map[String, String]
) {
  private val file =
    new CountingOutputFile(spec.absolutePath(relativePath), spec.hadoopConf)
  private val parquet =
    try DataFileWriter.openParquet(file, spec.hadoopConf)
    catch { case e: Throwable => file.abort(); throw e }
  private var records = 0L

  /** @param row the data columns only, in the order of the schema */
  def write(row: InternalRow): Unit = {
    parquet.write(row)
    records += 1
  }

  def numRecords: Long = records

  /** The size of the closed file's data before compression. */
  def decodedBytes: Long = parquet.getFooter.getBlocks.asScala.map(_.getTotalByteSize).sum

  def close(): WrittenFile = {
    parquet.close()
    val add = AddFile(
      path = PartitionPaths.logPath(relativePath),
      partitionValues = partitionValues,
      sizeBytes = file.sizeBytes,
      modificationTimeMs = System.currentTimeMillis(),
      dataChange = true,
      stats = Some(FileStatistics.json(parquet.getFooter, spec.statistics)),
      tags = spec.tags
    )
    WrittenFile(add, relativePath, records)
  }

  /** Deletes the file, closed or not. */
  def abort(): Unit = file.abort()
}

private object DataFileWriter {

  private def openParquet(file: OutputFile, conf: Configuration): ParquetWriter[InternalRow] =
    new Builder(file)
      .withConf(conf)
      .withWriteMode(ParquetFileWriter.Mode.OVERWRITE)
      .configured(conf)
      .build()

  private final class Builder(file: OutputFile)
      extends ParquetWriter.Builder[InternalRow, Builder](file) {

    override protected def self(): Builder = this

    /**
     * Spark's writer reads the rebase mode from the active session's configuration; the driver has resolved
     * it.
     */
    override protected def getWriteSupport(conf: Configuration): WriteSupport[InternalRow] = {
      val sqlConf = new SQLConf
      val rebaseMode = SQLConf.PARQUET_REBASE_MODE_IN_WRITE.key
      sqlConf.setConfString(rebaseMode, conf.get(rebaseMode))
      SQLConf.withExistingConf(sqlConf)(new FieldIdWriteSupport)
    }

    /**
     * Applies the settings of Parquet's own output format, which this builder does not read
     * by itself.
     */
    def configured(conf: Configuration): Builder = {
      withCompressionCodec(ParquetOutputFormat.getCompression(conf))
      withRowGroupSize(ParquetOutputFormat.getLongBlockSize(conf))
      withPageSize(ParquetOutputFormat.getPageSize(conf))
      withDictionaryPageSize(ParquetOutputFormat.getDictionaryPageSize(conf))
      withDictionaryEncoding(ParquetOutputFormat.getEnableDictionary(conf))
      withByteStreamSplitEncoding(ParquetOutputFormat.getByteStreamSplitEnabled(conf))
      withWriterVersion(ParquetOutputFormat.getWriterVersion(conf))
      withValidation(ParquetOutputFormat.getValidation(conf))
      withMinRowCountForPageSizeCheck(ParquetOutputFormat.getMinRowCountForPageSizeCheck(conf))
      withMaxRowCountForPageSizeCheck(ParquetOutputFormat.getMaxRowCountForPageSizeCheck(conf))
      withPageWriteChecksumEnabled(ParquetOutputFormat.getPageWriteChecksumEnabled(conf))
      withBloomFilterEnabled(ParquetOutputFormat.getBloomFilterEnabled(conf))
      withAdaptiveBloomFilterEnabled(ParquetOutputFormat.getAdaptiveBloomFilterEnabled(conf))
      withMaxBloomFilterBytes(ParquetOutputFormat.getBloomFilterMaxBytes(conf))
      withStatisticsEnabled(ParquetOutputFormat.getStatisticsEnabled(conf))
      withSizeStatisticsEnabled(ParquetOutputFormat.getSizeStatisticsEnabled(conf))
      ifSet(conf, ParquetOutputFormat.MAX_PADDING_BYTES)(withMaxPaddingSize(_))
      ifSet(conf, ParquetOutputFormat.BLOCK_ROW_COUNT_LIMIT)(withRowGroupRowCountLimit(_))
      ifSet(conf, ParquetOutputFormat.PAGE_ROW_COUNT_LIMIT)(withPageRowCountLimit(_))
      ifSet(conf, ParquetOutputFormat.COLUMN_INDEX_TRUNCATE_LENGTH) {
        withColumnIndexTruncateLength(_)
      }
      ifSet(conf, ParquetOutputFormat.STATISTICS_TRUNCATE_LENGTH)(withStatisticsTruncateLength(_))
      configureColumns(conf)
      this
    }

    private def ifSet(conf: Configuration, key: String)(use: Int => Builder): Unit =
      if (conf.get(key) != null) use(conf.getInt(key, 0))

    /** Settings of single columns, which Parquet spells `<setting>#<column>`. */
    private def configureColumns(conf: Configuration): Unit = {
      import ParquetOutputFormat._
      def columns(key: String)(use: (String, String) => Builder): Unit =
        conf.getPropsWithPrefix(key + "#").forEach((column, value) => use(column, value))
      columns(ENABLE_DICTIONARY)((c, v) => withDictionaryEncoding(c, v.toBoolean))
      columns(ENABLE_BYTE_STREAM_SPLIT)((c, v) => withByteStreamSplitEncoding(c, v.toBoolean))
      columns(BLOOM_FILTER_ENABLED)((c, v) => withBloomFilterEnabled(c, v.toBoolean))
      columns(BLOOM_FILTER_EXPECTED_NDV)((c, v) => withBloomFilterNDV(c, v.toLong))
      columns(BLOOM_FILTER_FPP)((c, v) => withBloomFilterFPP(c, v.toDouble))
      columns(BLOOM_FILTER_CANDIDATES_NUMBER)((c, v) => withBloomFilterCandidateNumber(c, v.toInt))
      columns(STATISTICS_ENABLED)((c, v) => withStatisticsEnabled(c, v.toBoolean))
      columns(SIZE_STATISTICS_ENABLED)((c, v) => withSizeStatisticsEnabled(c, v.toBoolean))
    }
  }
}
