package io.deltaic.spark.skipping

import java.time.ZoneId

import io.deltaic.protocol.AddFile
import io.deltaic.replay.{FileBlock, FileTable}
import io.deltaic.spark.schema.{PartitionValues, SkippingSchema}

/**
 * The statistics of files in memory, decoded once for all queries of this process that read them:
 * decoded values are cached with the block of files that snapshots share, and included in its size.
 */
private[spark] object SnapshotStatistics {

  /** @param zone of the session: used to parse timestamps without a zone in partition values */
  def of(files: FileTable, schema: SkippingSchema, zone: ZoneId): FileStatsColumns =
    columnsOf(files, files.live, schema, zone)

  /** Statistics of files that are used once, such as those that another commit adds. */
  def ofFiles(files: Seq[AddFile], schema: SkippingSchema, zone: ZoneId): FileStatsColumns =
    new FileStatsColumns(new AddedFiles(files.toIndexedSeq), schema, parser(zone))

  /** Statistics of some files of a table, in their order; none if the table does not contain all of them. */
  def among(
      table: FileTable,
      files: IndexedSeq[AddFile],
      schema: SkippingSchema,
      zone: ZoneId
  ): Option[FileStatsColumns] = {
    val numbers = files.iterator.map(f => table.indexOf(f.path, f.dvId)).toArray
    if (numbers.contains(-1)) None
    else Some(columnsOf(table, numbers.map(table.live), schema, zone))
  }

  private def columnsOf(
      files: FileTable,
      ordinals: Array[Int],
      schema: SkippingSchema,
      zone: ZoneId
  ): FileStatsColumns = {
    val blocks = files.blocks.toVector
    val ends = files.starts.zip(blocks).map { case (start, block) => start + block.size }
    val areRows = blocks.size == 1 && (ordinals eq files.live) && ordinals.length == ends.head
    val parts =
      if (areRows) FileParts.one(ordinals.length)
      else new FileParts(ordinals.length, files.starts, ends, ordinals)
    new FileStatsColumns(blocks.map(_.derive(Decoding(zone))), parts, schema)
  }

  private final case class Decoding(zone: ZoneId) extends FileBlock.Derivation[DecodedStats] {
    override def of(block: FileBlock): DecodedStats =
      new DecodedStats(new FilesOfBlock(block), parser(zone))
  }

  private def parser(zone: ZoneId): PartitionValueParser =
    (value, dataType, column) => PartitionValues.fromLog(column, dataType, value, zone)

  private final class FilesOfBlock(block: FileBlock) extends FileStatsSource {
    override def size: Int = block.size
    override def partitionValue(i: Int, column: String): String = block.partitionValue(i, column)
    override def stats(i: Int): String = block.statsOf(i)
    override def hasDeletionVector(i: Int): Boolean = block.deletionVector(i) != null
  }

  private final class AddedFiles(files: IndexedSeq[AddFile]) extends FileStatsSource {
    override def size: Int = files.size
    override def partitionValue(i: Int, column: String): String =
      files(i).partitionValues.getOrElse(column, null)
    override def stats(i: Int): String = files(i).stats.orNull
    override def hasDeletionVector(i: Int): Boolean = files(i).deletionVector.isDefined
  }
}
