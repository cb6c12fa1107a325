package io.deltaic.spark.optimize

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{
  BoundReference,
  Expression,
  UnsafeProjection,
  UnsafeRow
}
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.execution.datasources.FilePartition
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch

import io.deltaic.spark.scan.deletionvectors.{RowProbe, RowProbeSource}
import io.deltaic.spark.schema.ScanColumns

/**
 * Reads the live rows of parts, in tasks.
 *
 * @param columns the columns that the readers return
 */
private[optimize] final class PartReader(
    readers: PartitionReaderFactory,
    val columns: StructType,
    probes: RowProbeSource
) extends Serializable {

  /** The columns of the deletion vector, -1 if no file has one, and of the position in the file. */
  val vectorColumn: Int = columns.fieldNames.indexOf(ScanColumns.DeletionVector)
  val rowIndexColumn: Int = columns.fieldNames.indexOf(ScanColumns.RowIndex)

  def newProbe(): RowProbe = probes.newProbe()

  /** The rows in their order. Each is valid until the next one is read. */
  def rows(part: RewritePart): Iterator[InternalRow] = {
    val probe = newProbe()
    part.splits.iterator.flatMap(rows(_, probe))
  }

  /** The same for one split. */
  def rows(input: InputSplit, probe: RowProbe): Iterator[InternalRow] =
    live(
      batches(input).map(_.flatMap(_.rowIterator.asScala))
        .getOrElse(PartReader.items(readers.createReader(partition(input)))),
      probe
    )

  /**
   * Values of the live rows in their order. Each row is valid until the next one is read.
   *
   * @param values expressions of `columns`
   */
  def project(part: RewritePart, values: Seq[Expression]): Iterator[UnsafeRow] = {
    val probe = newProbe()
    lazy val ofRows = UnsafeProjection.create(values)
    val ofBatches = new BatchProjection(values)
    part.splits.iterator.flatMap { split =>
      batches(split) match {
        case Some(found) => found.flatMap { batch =>
            val projection = ofBatches.of(batch)
            live(batch.rowIterator.asScala, probe).map(projection(_))
          }
        case None => rows(split, probe).map(ofRows(_))
      }
    }
  }

  /** All rows of a split in batches; none if they are not read in batches. Each is valid until the next one is read. */
  def batches(input: InputSplit): Option[Iterator[ColumnarBatch]] = {
    val split = partition(input)
    Option.when(readers.supportColumnarReads(split)) {
      PartReader.items(readers.createColumnarReader(split))
    }
  }

  private def partition(input: InputSplit): InputPartition = FilePartition(0, Array(input.split))

  private def live(rows: Iterator[InternalRow], probe: RowProbe): Iterator[InternalRow] =
    if (vectorColumn < 0) rows else rows.filterNot(isDeleted(_, probe))

  private def isDeleted(row: InternalRow, probe: RowProbe): Boolean =
    !row.isNullAt(vectorColumn) &&
    probe.isDeleted(row.getUTF8String(vectorColumn), row.getLong(rowIndexColumn))
}

private object PartReader {

  /** What a reader returns; it is closed at the end, or with its task. */
  private def items[A](reader: PartitionReader[A]): Iterator[A] = {
    Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit](_ => reader.close()))
    Iterator.continually {
      val hasNext = reader.next()
      if (!hasNext) reader.close()
      hasNext
    }.takeWhile(identity).map(_ => reader.get())
  }
}

/** Projects the rows of batches, without null checks of columns in which no batch so far has nulls. */
private final class BatchProjection(values: Seq[Expression]) {
  import BatchProjection._

  private val columns =
    values.flatMap(_.collect { case column: BoundReference => column.ordinal }).distinct
  private var withNulls = Set.empty[Int]
  private var projection: UnsafeProjection = _
  private var compiled = 0

  /** The projection of the rows of a batch. */
  def of(batch: ColumnarBatch): UnsafeProjection = {
    val found = columns.filter(i => !withNulls(i) && batch.column(i).hasNull)
    if (projection == null || found.nonEmpty) {
      compiled += 1
      withNulls = if (compiled < MaxCompiled) withNulls ++ found else columns.toSet
      projection = create()
    }
    projection
  }

  private def create(): UnsafeProjection = UnsafeProjection.create(values.map(_.transform {
    case column: BoundReference => column.copy(nullable = withNulls(column.ordinal))
  }))
}

private object BatchProjection {

  /** The last of so many projections checks all columns. */
  private val MaxCompiled = 4
}
