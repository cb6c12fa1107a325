package io.deltaic.spark.write.parquet

import java.util

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.column.ParquetProperties
import org.apache.parquet.hadoop.ParquetOutputFormat
import org.apache.parquet.hadoop.metadata.{ColumnChunkMetaData, ParquetMetadata}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName

/**
 * The columns for which Parquet fell back from a dictionary in two files that an executor has written to a partition.
 * No dictionary is tried for them in some further files: until it falls back, Parquet looks up each value, which takes a
 * complete page, half of a small file.
 *
 * @param pageRows how many rows a page has at most; Parquet decides by the first page
 */
private[write] final class DictionaryFallbacks(pageRows: Long) {
  import DictionaryFallbacks._

  /** By the values of the partition columns. */
  private val found = new util.LinkedHashMap[Seq[String], Found](16, 0.75f, true) {
    override protected def removeEldestEntry(eldest: util.Map.Entry[Seq[String], Found]): Boolean =
      size > MaxPartitions
  }

  /** The columns, by their paths with dots, for which the next file of a partition tries no dictionary. */
  def forNextFile(partitionValues: Seq[String]): Set[String] = synchronized {
    Option(found.get(partitionValues)).filter(_.isConfirmed).fold(Set.empty[String]) { of =>
      if (of.filesLeft == 1) found.remove(partitionValues)
      else found.put(partitionValues, of.copy(filesLeft = of.filesLeft - 1))
      of.columns
    }
  }

  /**
   * Takes the columns over from a file.
   *
   * @param triedAll whether a dictionary was tried for each column
   */
  def record(partitionValues: Seq[String], file: ParquetMetadata, triedAll: Boolean): Unit =
    if (triedAll && file.getBlocks.asScala.exists(_.getRowCount >= pageRows)) synchronized {
      val columns = fallenBack(file)
      val agreed = Option(found.get(partitionValues)) match {
        case None => Found(columns)
        case Some(before) => before.copy(before.columns & columns, isConfirmed = true)
      }
      if (agreed.columns.isEmpty) found.remove(partitionValues)
      else found.put(partitionValues, agreed)
    }

  private def fallenBack(file: ParquetMetadata): Set[String] =
    file.getBlocks.asScala.flatMap(_.getColumns.asScala)
      // Parquet takes settings of columns by paths with dots.
      .filterNot(_.getPath.toArray.exists(_.contains('.')))
      .groupBy(_.getPath.toDotString)
      .collect {
        case (path, chunks) if chunks.forall(hasNoDictionary) && chunks.exists(fillsPage) => path
      }
      .toSet

  /**
   * If the values of the first page are all or almost all null, Parquet falls back, too, which shows nothing. So there
   * must be few nulls: at most half a page of them, or a tenth of the values.
   */
  private def fillsPage(chunk: ColumnChunkMetaData): Boolean = {
    val maxNulls = (pageRows / 2).max(chunk.getValueCount / 10)
    val nulls = Option(chunk.getStatistics).filter(_.isNumNullsSet).map(_.getNumNulls)
    chunk.getValueCount >= pageRows && nulls.exists(_ <= maxNulls)
  }
}

private[write] object DictionaryFallbacks {

  /** Dictionaries are tried again after so many files. */
  private val Files = 8

  private val MaxPartitions = 256

  /** @param isConfirmed whether a second file has agreed */
  private final case class Found(
      columns: Set[String],
      isConfirmed: Boolean = false,
      filesLeft: Int = Files
  )

  /** @param conf of Parquet's writer */
  def of(conf: Configuration): DictionaryFallbacks = new DictionaryFallbacks(
    conf.getInt(
      ParquetOutputFormat.PAGE_ROW_COUNT_LIMIT,
      ParquetProperties.DEFAULT_PAGE_ROW_COUNT_LIMIT
    ).toLong
  )

  private def hasNoDictionary(chunk: ColumnChunkMetaData): Boolean = {
    val pages = chunk.getEncodingStats
    // Booleans never have one.
    chunk.getPrimitiveType.getPrimitiveTypeName != PrimitiveTypeName.BOOLEAN &&
    pages != null && !pages.hasDictionaryPages
  }
}
