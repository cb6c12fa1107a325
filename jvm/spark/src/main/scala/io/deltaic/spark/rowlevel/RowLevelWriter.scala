package io.deltaic.spark.rowlevel

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.{DeltaWriter, DeltaWriterFactory, WriterCommitMessage}
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.dv.DeletionVector
import io.deltaic.protocol.AddFile
import io.deltaic.spark.write.{DataWriteSpec, PartitionedDataWriter}

/**
 * What a task found out: which rows end, as a serialized bitmap for each file it saw, and the files
 * with the rows that begin. A file split over several tasks has a bitmap from each.
 */
private[spark] final case class RowLevelMessage(
    endedRows: Seq[(String, Array[Byte])],
    newFiles: Seq[AddFile],
    identityMarks: Map[String, Long],
    deletedRows: Long,
    updatedRows: Long,
    insertedRows: Long
) extends WriterCommitMessage

private[rowlevel] object RowLevelMessage {

  def in(messages: Array[WriterCommitMessage]): Seq[RowLevelMessage] =
    messages.toSeq.collect { case message: RowLevelMessage => message }

  /** One bitmap for each file, out of those of the tasks that read parts of it. */
  def endedRows(reports: Seq[RowLevelMessage]): Map[String, DeletionVector] =
    reports.flatMap(_.endedRows).groupMapReduce(_._1) { case (_, bytes) =>
      DeletionVector.deserialize(bytes)
    } { (left, right) =>
      left.or(right)
      left
    }
}

private[spark] final class RowLevelWriterFactory(spec: DataWriteSpec) extends DeltaWriterFactory {
  override def createWriter(partitionId: Int, taskId: Long): DeltaWriter[InternalRow] =
    new RowLevelWriter(spec, partitionId)
}

private final class RowLevelWriter(spec: DataWriteSpec, partitionId: Int)
    extends DeltaWriter[InternalRow] {

  private val newRows = new PartitionedDataWriter(spec, partitionId)
  private val endedRows = new EndedRows
  private var deleted = 0L
  private var updated = 0L
  private var inserted = 0L

  override def delete(metadata: InternalRow, id: InternalRow): Unit = {
    endedRows.add(id)
    deleted += 1
  }

  override def update(metadata: InternalRow, id: InternalRow, row: InternalRow): Unit = {
    endedRows.add(id)
    newRows.write(row)
    updated += 1
  }

  override def insert(row: InternalRow): Unit = {
    newRows.write(row)
    inserted += 1
  }

  override def commit(): WriterCommitMessage =
    RowLevelMessage(
      endedRows.serialized,
      newRows.commit(),
      newRows.identityMarks,
      deleted,
      updated,
      inserted
    )

  override def abort(): Unit = newRows.abort()

  override def close(): Unit = ()
}

/** Positions of ended rows, by the file they are in; `(file, row index)` is the row id. */
private final class EndedRows {
  private val byFile = mutable.LinkedHashMap.empty[UTF8String, DeletionVector]
  private var lastFile: UTF8String = _
  private var lastVector: DeletionVector = _

  def add(id: InternalRow): Unit = {
    val file = id.getUTF8String(0)
    // Rows of a file come together, except after a join.
    if (!file.equals(lastFile)) {
      lastFile = file.clone() // the row's memory is used again for the next row
      lastVector = byFile.getOrElseUpdate(lastFile, new DeletionVector)
    }
    lastVector.add(id.getLong(1))
  }

  def serialized: Seq[(String, Array[Byte])] =
    byFile.iterator.map { case (file, vector) => file.toString -> vector.serialize() }.toSeq
}
