package io.deltaic.spark.write.parquet

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

import org.apache.parquet.hadoop.metadata.{ColumnChunkMetaData, ParquetMetadata}

/**
 * The columns for which Parquet fell back from a dictionary in the files that an executor has written to a partition.
 * No dictionary is tried for them in some further files: until it falls back, Parquet looks up each value, which takes a
 * complete page, half of a small file.
 */
private[write] final class DictionaryFallbacks {
  import DictionaryFallbacks._

  private val found = new ConcurrentHashMap[Seq[String], Found]

  /** The columns, by their paths with dots, for which the next file of a partition tries no dictionary. */
  def forNextFile(partitionValues: Seq[String]): Set[String] =
    Option(found.get(partitionValues)) match {
      case None => Set.empty
      case Some(of) if of.filesLeft.getAndDecrement() > 0 => of.columns
      case Some(of) =>
        found.remove(partitionValues, of)
        Set.empty
    }

  /**
   * Takes the columns over from a file.
   *
   * @param triedAll whether a dictionary was tried for each column
   */
  def record(partitionValues: Seq[String], file: ParquetMetadata, triedAll: Boolean): Unit =
    if (triedAll) {
      val columns = file.getBlocks.asScala.flatMap(_.getColumns.asScala)
        .groupBy(_.getPath.toDotString)
        .collect { case (path, chunks) if chunks.forall(hasFallenBack) => path }
      if (columns.nonEmpty) found.put(partitionValues, new Found(columns.toSet))
    }
}

private object DictionaryFallbacks {

  /** Dictionaries are tried again after so many files. */
  private val Files = 8

  /** With fewer values, it is not known whether a larger file would have kept its dictionary. */
  private val MinValues = 10000L

  private final class Found(val columns: Set[String]) {
    val filesLeft = new AtomicInteger(Files)
  }

  /** Parquet also falls back if the values of the first page are all null, which shows nothing. */
  private def hasFallenBack(chunk: ColumnChunkMetaData): Boolean = {
    val pages = chunk.getEncodingStats
    val nulls = Option(chunk.getStatistics).filter(_.isNumNullsSet).map(_.getNumNulls)
    nulls.exists(chunk.getValueCount - _ >= MinValues) && pages != null && !pages.hasDictionaryPages
  }
}
