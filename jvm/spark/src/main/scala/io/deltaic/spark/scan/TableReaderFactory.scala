package io.deltaic.spark.scan

import org.apache.hadoop.mapreduce.RecordReader
import org.apache.spark.sql.catalyst.expressions.{BoundReference, JoinedRow, UnsafeProjection}
import org.apache.spark.sql.catalyst.{FileSourceOptions, InternalRow}
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader}
import org.apache.spark.sql.deltaic.ParquetSplits
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader
import org.apache.spark.sql.execution.datasources.v2.FilePartitionReaderFactory
import org.apache.spark.sql.execution.datasources.{FilePartition, PartitionedFile}
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Reads splits of data files in the executors.
 *
 * @param vectorized whether all that is stored can be read in batches
 * @param columnar whether batches are also what Spark wants; if not, they are turned into rows
 * @param deletionVectors where the vectors come from by which rows of this scan are filtered, if any
 */
private[scan] final class TableReaderFactory(
    splits: ParquetSplits,
    layout: ScanLayout,
    vectorized: Boolean,
    columnar: Boolean,
    deletionVectors: Option[DeletionVectorSource]
) extends FilePartitionReaderFactory {

  override protected def options: FileSourceOptions = splits.options

  override def supportColumnarReads(partition: InputPartition): Boolean = columnar

  override def createReader(task: InputPartition): PartitionReader[InternalRow] = {
    loadDeletionVectors(task)
    super.createReader(task)
  }

  override def createColumnarReader(task: InputPartition): PartitionReader[ColumnarBatch] = {
    loadDeletionVectors(task)
    super.createColumnarReader(task)
  }

  override def buildColumnarReader(split: PartitionedFile): PartitionReader[ColumnarBatch] =
    batches(split)

  override def buildReader(split: PartitionedFile): PartitionReader[InternalRow] =
    if (vectorized) new RowsOfBatches(batches(split), layout)
    else new RowReader(splits.openRows(split), layout, layout.constantValues(split))

  private val vectorColumn = layout.fileConstants.fieldNames.indexOf(ScanColumns.DeletionVector)

  /** The filter above opens them one by one; here all are known. */
  private def loadDeletionVectors(task: InputPartition): Unit = (task, deletionVectors) match {
    case (partition: FilePartition, Some(source)) =>
      val constants = partition.files.toSeq.map(_.partitionValues.getUTF8String(vectorColumn))
      source.prefetch(constants.filter(_ != null))
    case _ => ()
  }

  private def batches(split: PartitionedFile): BatchReader = {
    val positions = new PositionVector
    val reader = splits.openBatches(split, Option.when(layout.needsPositions)(positions))
    try new BatchReader(reader, layout, positions, layout.constantValues(split), splits.batchRows)
    catch {
      case e: Throwable =>
        reader.close()
        throw e
    }
  }
}

/** Spark's own reader fills the stored columns of a batch, which the batch returned here shares. */
private final class BatchReader(
    reader: VectorizedParquetRecordReader,
    layout: ScanLayout,
    positions: PositionVector,
    constants: InternalRow,
    batchRows: Int
) extends PartitionReader[ColumnarBatch] {

  private val stored = reader.resultBatch()
  private val columns = layout.vectors(stored.column(_), positions, constants, batchRows)
  private val strings = columns.collect { case column: StringVector => column }
  private val batch = new ColumnarBatch(columns)

  override def next(): Boolean = {
    val more = reader.nextBatch()
    if (more) strings.foreach(_.enterBatch())
    more
  }

  override def get(): ColumnarBatch = {
    batch.setNumRows(stored.numRows)
    batch
  }

  override def close(): Unit = reader.close()
}

/** For plans without whole-stage code generation, which want rows. */
private final class RowsOfBatches(batches: BatchReader, layout: ScanLayout)
    extends PartitionReader[InternalRow] {

  private val toUnsafe = UnsafeProjection.create(layout.output.fields.toSeq.zipWithIndex.map {
    case (field, ordinal) => BoundReference(ordinal, field.dataType, field.nullable)
  })
  private var rows: java.util.Iterator[InternalRow] = java.util.Collections.emptyIterator()

  override def next(): Boolean = {
    while (!rows.hasNext && batches.next()) rows = batches.get().rowIterator()
    rows.hasNext
  }

  override def get(): InternalRow = toUnsafe(rows.next())

  override def close(): Unit = batches.close()
}

private final class RowReader(
    reader: RecordReader[Void, InternalRow],
    layout: ScanLayout,
    constants: InternalRow
) extends PartitionReader[InternalRow] {

  private val toOutput = UnsafeProjection.create(layout.expressions)
  private val joined = new JoinedRow

  override def next(): Boolean = reader.nextKeyValue()

  override def get(): InternalRow = toOutput(joined(reader.getCurrentValue, constants))

  override def close(): Unit = reader.close()
}
