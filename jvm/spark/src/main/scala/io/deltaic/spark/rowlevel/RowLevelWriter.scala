package io.deltaic.spark.rowlevel

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, JoinedRow}
import org.apache.spark.sql.connector.write.{DeltaWriter, DeltaWriterFactory, WriterCommitMessage}
import org.apache.spark.sql.deltaic.WriteInternals
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.dv.{DeletionVector, DeletionVectorFileWriter, DeletionVectorStore}
import io.deltaic.protocol.AddFile
import io.deltaic.spark.changes.ChangeColumns
import io.deltaic.spark.schema.ScanColumns
import io.deltaic.spark.write.files.{DataWriteSpec, PartitionedDataWriter}

/**
 * @param reportedBytes a task with more bytes of bitmaps writes them to a file and reports the file
 * @param changes how change data files are written, if tasks have to write any
 */
private[spark] final class RowLevelWriterFactory(
    spec: DataWriteSpec,
    reportedBytes: Long,
    changes: Option[DataWriteSpec] = None
) extends DeltaWriterFactory {
  override def createWriter(partitionId: Int, taskId: Long): DeltaWriter[InternalRow] =
    new RowLevelWriter(spec, reportedBytes, changes, partitionId)
}

private final class RowLevelWriter(
    spec: DataWriteSpec,
    reportedBytes: Long,
    changes: Option[DataWriteSpec],
    partitionId: Int
) extends DeltaWriter[InternalRow] {

  private val newRows = new PartitionedDataWriter(spec, partitionId)
  private val images = changes.map(new ImageWriter(_, partitionId)).orNull
  private val tracked = if (spec.numRowTrackingColumns > 0) new TrackedRow else null
  private val deletedRows = new DeletedRowPositions
  private val updatedRows = new DeletedRowPositions
  private var inserted = 0L
  private var bitmapFile: Option[DeletionVectorFileWriter] = None

  override def delete(metadata: InternalRow, id: InternalRow): Unit = deletedRows.add(id)

  override def update(metadata: InternalRow, id: InternalRow, row: InternalRow): Unit = {
    updatedRows.add(id)
    newRows.write(if (tracked == null) row else tracked.updated(row, metadata))
    if (images != null) images.updated(row)
  }

  override def insert(row: InternalRow): Unit = {
    newRows.write(if (tracked == null) row else tracked.inserted(row))
    if (images != null) images.inserted(row)
    inserted += 1
  }

  override def commit(): WriterCommitMessage = {
    // Spark checks for two matches within a join task; these rows may come from several.
    if (updatedRows.areRepeated) throw WriteInternals.matchedTwice
    if (deletedRows.sizeBytes + updatedRows.sizeBytes > reportedBytes) openBitmapFile()
    val toBitmap: DeletionVector => Bitmap = bitmapFile match {
      case Some(file) => rows => Bitmap.Stored(file.add(rows))
      case None => rows => Bitmap.Inline(rows.serialize())
    }
    val (deleted, updated) = (deletedRows.found(toBitmap), updatedRows.found(toBitmap))
    bitmapFile.foreach(_.close())
    RowLevelMessage(
      deleted,
      updated,
      newRows.commit(),
      if (images == null) Nil else images.commit(),
      newRows.identityHighWaterMarks,
      inserted,
      bitmapFile.toSeq.flatMap(_.files).map(_.toString)
    )
  }

  private def openBitmapFile(): Unit = {
    val file = spec.newVectorFile(new DeletionVectorStore(spec.hadoopConf), Int.MaxValue.toLong)
    WriteInternals.onFailedTask(() => file.abort())
    bitmapFile = Some(file)
  }

  override def abort(): Unit =
    try newRows.abort()
    finally
      try bitmapFile.foreach(_.abort())
      finally if (images != null) images.abort()

  override def close(): Unit = ()
}

/**
 * Appends the materialized row tracking columns to rows: an updated row keeps its row ID, but no commit
 * version, since it has changed; an inserted row has neither.
 */
private final class TrackedRow {
  private val tracked = new GenericInternalRow(ScanColumns.rowTracking.length)
  private val joined = new JoinedRow

  def updated(row: InternalRow, metadata: InternalRow): InternalRow = {
    if (metadata.isNullAt(0)) tracked.setNullAt(0) else tracked.setLong(0, metadata.getLong(0))
    joined(row, tracked)
  }

  def inserted(row: InternalRow): InternalRow = {
    tracked.setNullAt(0)
    joined(row, tracked)
  }
}

/** Writes the images of new rows into change data files. */
private final class ImageWriter(spec: DataWriteSpec, partitionId: Int) {
  private val writer = new PartitionedDataWriter(spec, partitionId, rowsAreNew = false)
  private val insert = InternalRow(UTF8String.fromString(ChangeColumns.Insert))
  private val update = InternalRow(UTF8String.fromString(ChangeColumns.UpdatePostimage))
  private val joined = new JoinedRow

  def inserted(row: InternalRow): Unit = writer.write(joined(row, insert))

  def updated(row: InternalRow): Unit = writer.write(joined(row, update))

  def commit(): Seq[AddFile] = writer.commit()

  def abort(): Unit = writer.abort()
}

/** Positions of deleted rows by file; Spark's row ID is `(file, row index)`. */
private final class DeletedRowPositions {
  private val byFile = mutable.LinkedHashMap.empty[UTF8String, DeletionVector]
  private var lastFile: UTF8String = _
  private var lastVector: DeletionVector = _
  private var added = 0L

  def add(id: InternalRow): Unit = {
    val file = id.getUTF8String(0)
    // Rows of a file are consecutive, except after a join.
    if (!file.equals(lastFile)) {
      lastFile = file.clone() // the row's memory is reused for the next row
      lastVector = byFile.getOrElseUpdate(lastFile, new DeletionVector)
    }
    lastVector.add(id.getLong(1))
    added += 1
  }

  /** Whether a row was added more than once. */
  def areRepeated: Boolean = byFile.valuesIterator.map(_.cardinality).sum < added

  def sizeBytes: Long = byFile.valuesIterator.map(_.serializedSizeBytes).sum

  def found(toBitmap: DeletionVector => Bitmap): Seq[FoundRows] =
    byFile.iterator.map { case (file, rows) => FoundRows(file.toString, toBitmap(rows)) }.toVector
}
