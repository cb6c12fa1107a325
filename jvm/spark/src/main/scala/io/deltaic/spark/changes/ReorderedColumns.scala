package io.deltaic.spark.changes

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{BoundReference, UnsafeProjection}
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Reads with another factory, and reorders its columns.
 *
 * @param columns in the order of the result
 * @param from the ordinal of each of them in the other factory
 */
private[changes] final case class ReorderedColumns(
    factory: PartitionReaderFactory,
    columns: StructType,
    from: IndexedSeq[Int]
) {
  private def isSameOrder: Boolean = from == columns.indices

  def supportColumnarReads(partition: InputPartition): Boolean =
    factory.supportColumnarReads(partition)

  def createReader(partition: InputPartition): PartitionReader[InternalRow] = {
    val reader = factory.createReader(partition)
    if (isSameOrder) reader
    else {
      val reorder = UnsafeProjection.create(columns.fields.toSeq.zip(from).map { case (field, i) =>
        BoundReference(i, field.dataType, field.nullable)
      })
      new Mapped[InternalRow](reader, reorder(_))
    }
  }

  /** The vectors are shared, so this costs an array for each batch. */
  def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] = {
    val reader = factory.createColumnarReader(partition)
    if (isSameOrder) reader
    else
      new Mapped[ColumnarBatch](
        reader,
        batch => new ColumnarBatch(from.map(batch.column(_)).toArray, batch.numRows)
      )
  }

  private final class Mapped[T](reader: PartitionReader[T], map: T => T)
      extends PartitionReader[T] {
    override def next(): Boolean = reader.next()
    override def get(): T = map(reader.get())
    override def close(): Unit = reader.close()
  }
}
