package io.deltaic.spark.write.files

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  BoundReference,
  Expression,
  UnsafeProjection,
  UnsafeRow
}
import org.apache.spark.sql.deltaic.WriteInternals
import org.apache.spark.sql.types.StructType

import io.deltaic.protocol.AddFile
import io.deltaic.spark.schema.{PartitionValues, RowChecks}

/**
 * Writes the rows of one task, each to a file of its partition.
 *
 * One file is open at a time, so rows should come sorted by partition; a partition that comes back
 * gets another file. A task without rows writes no file. Not thread safe.
 *
 * @param taskPartition the Spark partition of the task, which is in the file names
 * @param rowsAreNew    whether the rows are new to the table, so that its conditions are checked; copied rows are
 *                      not checked
 */
private[deltaic] final class PartitionedDataWriter(
    spec: DataWriteSpec,
    taskPartition: Int,
    rowsAreNew: Boolean = true
) {
  private val written = mutable.ArrayBuffer.empty[WrittenFile]
  private val notNull: NotNullCheck =
    if (!rowsAreNew) null
    else NotNullCheck.of(spec.tablePath, spec.schema).orNull
  private val checks: RowChecks =
    if (!rowsAreNew || spec.checks.isEmpty) null
    else new RowChecks(spec.tablePath, spec.checks, taskPartition)
  private val marks: IdentityHighWaterMarks =
    Option.when(rowsAreNew)(new IdentityHighWaterMarks(spec.schema)).filterNot(_.isEmpty).orNull
  private val maxRecordsPerFile: Long =
    if (spec.maxRecordsPerFile > 0) spec.maxRecordsPerFile else Long.MaxValue
  private val split: PartitionSplit =
    if (spec.partitionOrdinals.isEmpty) null else new PartitionSplit(spec)

  /** The columns of a row that are in the files; null if that is all of them. */
  private val stored: UnsafeProjection =
    if (spec.storesWholeRows) null
    else PartitionSplit.projection(spec.schema, spec.fileOrdinals, VoidColumns.cut)
  private var current: DataFileWriter = _

  WriteInternals.onFailedTask(() => abort())

  def write(row: InternalRow): Unit = {
    if (notNull != null) notNull.check(row)
    if (checks != null) checks.check(row)
    if (marks != null) marks.update(row)
    if (split != null && split.enters(row)) closeCurrent()
    if (current == null) open(if (split == null) Nil else split.values)
    current.write(if (stored == null) row else stored(row))
    if (current.numRecords >= maxRecordsPerFile) closeCurrent()
  }

  /** Closes the last file. The files become part of the table when these actions are committed. */
  def commit(): Seq[AddFile] = {
    closeCurrent()
    WriteInternals.addOutputMetrics(written.iterator.map(_.addFile.sizeBytes).sum, numRecords)
    written.iterator.map(_.addFile).toSeq
  }

  /** The high-water marks of identity columns beyond those of the table, by column. */
  def identityHighWaterMarks: Map[String, Long] = if (marks == null) Map.empty else marks.result

  /** The number of rows in closed files. */
  def numRecords: Long = written.iterator.map(_.numRecords).sum

  /** Deletes everything that this writer wrote; called when the task or the whole write fails. */
  def abort(): Unit = {
    val unfinished = Option(current)
    current = null
    val files = written.map(file => spec.absolutePath(file.relativePath))
    written.clear()
    try unfinished.foreach(_.abort())
    finally files.foreach(path => path.getFileSystem(spec.hadoopConf).delete(path, false))
  }

  private def open(partitionValues: Seq[String]): Unit =
    current = DataFileWriter.open(spec, taskPartition, partitionValues)

  private def closeCurrent(): Unit =
    if (current != null) {
      written += current.close()
      current = null
    }
}

/** Detects partition changes between rows, by generated code. */
private final class PartitionSplit(spec: DataWriteSpec) {

  private val key = PartitionSplit.projection(spec.schema, spec.partitionOrdinals)
  private var currentKey: UnsafeRow = _

  /** Moves to the partition of this row; false if the previous row was in the same one. */
  def enters(row: InternalRow): Boolean = {
    val rowKey = key(row)
    val changed = !rowKey.equals(currentKey)
    if (changed) currentKey = rowKey.copy()
    changed
  }

  /** The partition of the last row, as the log spells it. */
  def values: Seq[String] = spec.partitionOrdinals.indices.map { i =>
    val field = spec.schema(spec.partitionOrdinals(i))
    val value = currentKey.get(i, field.dataType)
    val text = PartitionValues.toLog(field.name, field.dataType, value)
    // The null check of rows does not cover empty strings, which are null partition values.
    if (text == null && !field.nullable) throw NotNullCheck.violation(spec.tablePath, field.name)
    text
  }
}

private object PartitionSplit {

  /** The result is reused by the next call. */
  def projection(
      schema: StructType,
      ordinals: Array[Int],
      ofColumn: Expression => Expression = identity
  ): UnsafeProjection =
    UnsafeProjection.create(ordinals.toSeq.map { i =>
      ofColumn(BoundReference(i, schema(i).dataType, schema(i).nullable))
    })
}
