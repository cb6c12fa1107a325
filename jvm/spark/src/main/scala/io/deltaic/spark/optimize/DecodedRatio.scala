package io.deltaic.spark.optimize

import scala.jdk.CollectionConverters._
import scala.util.Using
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.protocol.{AddFile, LogPath}
import io.deltaic.spark.util.ParquetFiles

/**
 * How many times larger the data of files is before compression. The footers of a few files tell: to read
 * those of all would take a request for each.
 */
private[optimize] object DecodedRatio {

  private val NumFooters = 16

  /** @param files of the table; a footer that cannot be read is left to the task that reads the file */
  def of(table: Path, files: IndexedSeq[AddFile], conf: Configuration): Double = {
    val step = (files.size / NumFooters).max(1)
    val sizes = files.indices.by(step).take(NumFooters).flatMap(i => sizesOf(table, files(i), conf))
    val (compressed, decoded) = (sizes.map(_._1).sum, sizes.map(_._2).sum)
    if (compressed > 0) decoded.toDouble / compressed else 1.0
  }

  private def sizesOf(table: Path, file: AddFile, conf: Configuration): Option[(Long, Long)] =
    try
      Using.resource(ParquetFiles.open(LogPath.toAbsolute(table, file.path), conf)) { reader =>
        val rowGroups = reader.getRowGroups.asScala
        Some(rowGroups.map(_.getCompressedSize).sum -> rowGroups.map(_.getTotalByteSize).sum)
      }
    catch { case NonFatal(_) => None }
}
