package io.deltaic.spark.write.parquet

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.{ParquetFileWriter, ParquetOutputFormat, ParquetWriter}
import org.apache.parquet.io.OutputFile
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.internal.SQLConf

/**
 * Opens Parquet's writer with the settings of its own output format, except `parquet.page.size.check.estimate` and
 * `parquet.page.value.count.threshold`, which its builder lacks, and the limit on the memory of all writers.
 */
private[write] object ParquetRowWriter {

  /**
   * @param conf  complete for Spark's writer
   * @param withoutDictionary the columns, by their paths with dots, for which no dictionary is tried
   */
  def open(
      file: OutputFile,
      conf: Configuration,
      withoutDictionary: Set[String]
  ): ParquetWriter[InternalRow] =
    new Builder(file)
      .withConf(conf)
      .withWriteMode(ParquetFileWriter.Mode.OVERWRITE)
      .configured(conf, withoutDictionary)
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
      SQLConf.withExistingConf(sqlConf) {
        val support = new FieldIdWriteSupport
        // It requires that the columns come in the order of the file.
        if (ParquetOutputFormat.getValidation(conf)) support else new RowWriteSupport(support)
      }
    }

    /** Applies the settings of Parquet's own output format, which this builder does not read by itself. */
    def configured(conf: Configuration, withoutDictionary: Set[String]): Builder = {
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
      withoutDictionary.foreach(withDictionaryEncoding(_, false))
      this
    }

    private def ifSet(conf: Configuration, key: String)(use: Int => Builder): Unit =
      if (conf.get(key) != null) use(conf.getInt(key, 0))

    /** Settings of single columns, which Parquet spells `<setting>#<column>`. */
    private def configureColumns(conf: Configuration): Unit = {
      import ParquetOutputFormat._
      def columns(key: String)(use: (String, String) => Builder): Unit =
        conf.getPropsWithPrefix(key + "#").forEach((column, _) => use(column, s"$key#$column"))
      def booleans(key: String)(use: (String, Boolean) => Builder): Unit =
        columns(key)((column, full) => use(column, conf.getBoolean(full, false)))
      booleans(ENABLE_DICTIONARY)(withDictionaryEncoding(_, _))
      booleans(ENABLE_BYTE_STREAM_SPLIT)(withByteStreamSplitEncoding(_, _))
      booleans(BLOOM_FILTER_ENABLED)(withBloomFilterEnabled(_, _))
      columns(BLOOM_FILTER_EXPECTED_NDV)((c, full) => withBloomFilterNDV(c, conf.getLong(full, -1)))
      columns(BLOOM_FILTER_FPP)((c, full) => withBloomFilterFPP(c, conf.getDouble(full, 0)))
      columns(BLOOM_FILTER_CANDIDATES_NUMBER) { (c, full) =>
        withBloomFilterCandidateNumber(c, conf.getInt(full, 0))
      }
      booleans(STATISTICS_ENABLED)(withStatisticsEnabled(_, _))
      booleans(SIZE_STATISTICS_ENABLED)(withSizeStatisticsEnabled(_, _))
    }
  }
}
