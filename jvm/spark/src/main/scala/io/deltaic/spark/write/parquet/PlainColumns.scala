package io.deltaic.spark.write.parquet

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicInteger

import scala.jdk.CollectionConverters._

import org.apache.parquet.hadoop.metadata.{ColumnChunkMetaData, ParquetMetadata}

/**
 * The columns whose dictionaries were given up in the files that an executor has written to a partition. They are
 * written without one for some files: Parquet looks each value of the first page up before it gives a dictionary up,
 * which is half of the rows of a small file.
 */
private[write] final class PlainColumns {
  import PlainColumns._

  private val found = new ConcurrentHashMap[Seq[String], Found]

  /** The columns, by their paths with dots, that the next file of a partition has without a dictionary. */
  def next(partitionValues: Seq[String]): Set[String] =
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
   * @param tried whether dictionaries were tried for all its columns
   */
  def learn(partitionValues: Seq[String], file: ParquetMetadata, tried: Boolean): Unit =
    if (tried) {
      val columns = file.getBlocks.asScala.flatMap(_.getColumns.asScala)
        .groupBy(_.getPath.toDotString)
        .collect { case (path, chunks) if chunks.forall(isPlain) => path }
      if (columns.nonEmpty) found.put(partitionValues, new Found(columns.toSet))
    }
}

private object PlainColumns {

  /** So many files are written without dictionaries before they are tried again. */
  private val Files = 8

  /** With fewer values, it is not known whether a larger file would have kept its dictionary. */
  private val MinValues = 10000L

  private final class Found(val columns: Set[String]) {
    val filesLeft = new AtomicInteger(Files)
  }

  private def isPlain(chunk: ColumnChunkMetaData): Boolean = {
    val pages = chunk.getEncodingStats
    chunk.getValueCount >= MinValues && pages != null && !pages.hasDictionaryPages
  }
}
