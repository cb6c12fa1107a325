package io.deltaic.replay

import io.deltaic.protocol.{DeletionVectorDescriptor, RemoveFile}
import io.deltaic.replay.checkpoint.{
  LongCell,
  MalformedRow,
  MapCell,
  ParsedStats,
  StringCell,
  StructCell
}

/**
 * The `add` of the current row of a checkpoint. Its cells are looked up once for all rows, of which there may be
 * millions. The cell of a missing column is null.
 */
private[replay] final class AddCells(add: StructCell) {
  private val path = add.text("path")
  private val partitionValues = add.map("partitionValues")
  private val size = add.long("size")
  private val modificationTime = add.long("modificationTime")
  private val stats = add.text("stats")
  private val parsedStats = add.struct("stats_parsed").orNull
  private val tags = add.map("tags")
  private val baseRowId = add.long("baseRowId")
  private val defaultRowCommitVersion = add.long("defaultRowCommitVersion")
  private val clusteringProvider = add.text("clusteringProvider")
  private val vector = new DeletionVectorCells(add.struct("deletionVector").orNull)

  def isDefined: Boolean = add.isDefined

  /** Statistics as JSON, null where there are none. */
  def statsJson: String =
    if (stats != null && stats.isDefined) stats.text
    else if (parsedStats != null && parsedStats.isDefined) ParsedStats.toJson(parsedStats)
    else null

  def appendTo(details: FileDetails): Unit =
    details.append(statsJson, FileCells.valueOf(partitionValues))

  def appendTo(block: FileBlockBuilder): Unit = {
    if (path == null || !path.isDefined) FileCells.lacks("add.path")
    if (size == null || !size.isDefined) FileCells.lacks("add.size")
    val descriptor = vector.descriptor
    block.append(
      path.text,
      block.keyOf(path.text, Option(descriptor).map(_.uniqueId)),
      FileCells.valueOf(partitionValues),
      size.long,
      if (modificationTime != null && modificationTime.isDefined) modificationTime.long else 0L,
      statsJson,
      FileCells.valueOf(tags),
      descriptor,
      FileCells.valueOf(baseRowId),
      FileCells.valueOf(defaultRowCommitVersion),
      if (clusteringProvider != null && clusteringProvider.isDefined) clusteringProvider.text
      else null
    )
  }
}

/** The `remove` of the current row of a checkpoint. */
private[replay] final class RemoveCells(remove: StructCell) {
  private val path = remove.text("path")
  private val deletionTimestamp = remove.long("deletionTimestamp")
  private val dataChange = remove.long("dataChange")
  private val extended = remove.long("extendedFileMetadata")
  private val partitionValues = remove.map("partitionValues")
  private val size = remove.long("size")
  private val baseRowId = remove.long("baseRowId")
  private val defaultRowCommitVersion = remove.long("defaultRowCommitVersion")
  private val vector = new DeletionVectorCells(remove.struct("deletionVector").orNull)

  def isDefined: Boolean = remove.isDefined

  def read(): RemoveFile = {
    if (path == null || !path.isDefined) FileCells.lacks("remove.path")
    RemoveFile(
      path = path.text,
      deletionTimestampMs = FileCells.valueOf(deletionTimestamp),
      dataChange = FileCells.valueOf(dataChange).forall(_ == 1),
      extendedFileMetadata = FileCells.valueOf(extended).map(_ == 1),
      partitionValues = FileCells.valueOf(partitionValues),
      sizeBytes = FileCells.valueOf(size),
      deletionVector = Option(vector.descriptor),
      baseRowId = FileCells.valueOf(baseRowId),
      defaultRowCommitVersion = FileCells.valueOf(defaultRowCommitVersion)
    )
  }
}

/** @param struct null when the file has no deletion vectors */
private final class DeletionVectorCells(struct: StructCell) {
  private def text(name: String) = if (struct == null) null else struct.text(name)
  private def long(name: String) = if (struct == null) null else struct.long(name)

  private val storageType = text("storageType")
  private val pathOrInline = text("pathOrInlineDv")
  private val offset = long("offset")
  private val size = long("sizeInBytes")
  private val cardinality = long("cardinality")

  /** Null when the file has none. */
  def descriptor: DeletionVectorDescriptor =
    if (struct == null || !struct.isDefined) null
    else {
      def required[A](value: Option[A], field: String): A =
        value.getOrElse(FileCells.lacks(s"deletionVector.$field"))
      DeletionVectorDescriptor(
        required(FileCells.valueOf(storageType), "storageType"),
        required(FileCells.valueOf(pathOrInline), "pathOrInlineDv"),
        FileCells.valueOf(offset).map(Math.toIntExact),
        Math.toIntExact(required(FileCells.valueOf(size), "sizeInBytes")),
        required(FileCells.valueOf(cardinality), "cardinality")
      )
    }
}

private[replay] object FileCells {

  def valueOf(cell: LongCell): Option[Long] =
    if (cell != null && cell.isDefined) Some(cell.long) else None

  def valueOf(cell: StringCell): Option[String] =
    if (cell != null && cell.isDefined) Some(cell.text) else None

  def valueOf(cell: MapCell): Map[String, String] = if (cell == null) Map.empty else cell.map

  def lacks(field: String): Nothing =
    throw new MalformedRow(s"a row lacks the required field $field")
}
