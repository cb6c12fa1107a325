package io.deltaic.spark.scan.vectorized

import org.apache.hadoop.mapreduce.RecordReader
import org.apache.spark.SparkException
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.expressions.{BoundReference, JoinedRow, UnsafeProjection}
import org.apache.spark.sql.catalyst.{FileSourceOptions, InternalRow}
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader}
import org.apache.spark.sql.deltaic.scan.ParquetSplits
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader
import org.apache.spark.sql.execution.datasources.v2.FilePartitionReaderFactory
import org.apache.spark.sql.execution.datasources.{FilePartition, PartitionedFile}
import org.apache.spark.sql.vectorized.ColumnarBatch
import org.apache.spark.util.SerializableConfiguration

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.replay.VacuumedVersion
import io.deltaic.spark.scan.deletionvectors.DeletionVectorSource
import io.deltaic.spark.schema.ScanColumns

/**
 * Reads splits of data files in the executors.
 *
 * @param table the table and version, for errors
 * @param vectorized whether all stored columns can be read in batches
 * @param columnar whether Spark also requests batches; if not, they are converted to rows
 * @param configuration of file systems, to find out why a file is missing
 * @param deletionVectors the source of the deletion vectors by which rows of this scan are filtered, if any
 * @param isStreaming whether a batch of a stream is read, for errors
 */
private[scan] final class TableReaderFactory(
    table: String,
    version: Long,
    splits: ParquetSplits,
    layout: ScanLayout,
    vectorized: Boolean,
    columnar: Boolean,
    deletionVectors: Option[DeletionVectorSource],
    configuration: Option[Broadcast[SerializableConfiguration]] = None,
    isStreaming: Boolean = false
) extends FilePartitionReaderFactory {

  override protected def options: FileSourceOptions = splits.options

  override def supportColumnarReads(partition: InputPartition): Boolean = columnar

  override def createReader(task: InputPartition): PartitionReader[InternalRow] = {
    loadDeletionVectors(task)
    new NamingReader(super.createReader(task), missingFile)
  }

  override def createColumnarReader(task: InputPartition): PartitionReader[ColumnarBatch] = {
    loadDeletionVectors(task)
    new NamingReader(super.createColumnarReader(task), missingFile)
  }

  private def missingFile(file: String, cause: Throwable): DeltaicThrowable = {
    val condition =
      if (isStreaming) "DELTAIC_STREAM_DATA_FILE_MISSING" else "DELTAIC_DATA_FILE_MISSING"
    val parameters = Map("table" -> table, "version" -> version.toString, "file" -> file)
    val missing = DeltaicException(condition, parameters, cause)
    configuration.filterNot(_ => isStreaming).fold(missing) { shared =>
      VacuumedVersion.explain(table, version, file, shared.value.value)(missing)
    }
  }

  override def buildColumnarReader(split: PartitionedFile): PartitionReader[ColumnarBatch] =
    batches(split)

  override def buildReader(split: PartitionedFile): PartitionReader[InternalRow] =
    if (vectorized) new RowsOfBatches(batches(split), layout)
    else new RowReader(splits.openRows(split), layout, layout.constantValues(split))

  private val vectorColumn = layout.fileConstants.fieldNames.indexOf(ScanColumns.DeletionVector)

  /** The filter above opens vectors one by one; here all of the task's are known. */
  private def loadDeletionVectors(task: InputPartition): Unit = (task, deletionVectors) match {
    case (partition: FilePartition, Some(source)) =>
      val constants = partition.files.toSeq.map(_.partitionValues.getUTF8String(vectorColumn))
      source.prefetch(constants.filter(_ != null))
    case _ => ()
  }

  private def batches(split: PartitionedFile): BatchReader = {
    val positions = new PositionVector
    val reader = splits.openBatches(
      split,
      Option.when(layout.needsPositions)(positions),
      new PageDecompressors(_)
    )
    try new BatchReader(reader, layout, positions, layout.constantValues(split), splits.batchRows)
    catch {
      case e: Throwable =>
        reader.close()
        throw e
    }
  }
}

/** Adds the table to the error for a missing file, and passes Deltaic's own errors through. */
private final class NamingReader[T](
    files: PartitionReader[T],
    missingFile: (String, Throwable) => DeltaicThrowable
) extends PartitionReader[T] {

  override def next(): Boolean =
    try files.next()
    catch {
      case e: SparkException if e.getCondition == "FAILED_READ_FILE.FILE_NOT_EXIST" =>
        throw missingFile(e.getMessageParameters.getOrDefault("path", ""), e)
      case e: SparkException if e.getCause.isInstanceOf[DeltaicThrowable] => throw e.getCause
    }

  override def get(): T = files.get()

  override def close(): Unit = files.close()

  override def currentMetricsValues(): Array[CustomTaskMetric] = files.currentMetricsValues()
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
  private val filled = Array.tabulate(stored.numCols) { ordinal =>
    DecodedColumn.of(stored.column(ordinal), layout.stored(ordinal))
  }
  private val batch =
    new ColumnarBatch(layout.vectors(filled(_).values, positions, constants, batchRows))

  override def next(): Boolean = {
    filled.foreach(_.leaveBatch())
    val more = reader.nextBatch()
    if (more) filled.foreach(_.enterBatch(stored.numRows))
    more
  }

  override def get(): ColumnarBatch = {
    batch.setNumRows(stored.numRows)
    batch
  }

  override def close(): Unit = reader.close()
}

/** For plans without whole-stage code generation, which request rows. */
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
