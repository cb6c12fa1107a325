package io.deltaic.spark.write.parquet

import scala.collection.mutable.ArrayBuffer

import org.apache.hadoop.conf.Configuration
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection
import org.apache.spark.sql.execution.datasources.parquet.{
  InferVariantShreddingSchema,
  ParquetWriteSupport
}
import org.apache.spark.sql.types.{StructType, VariantType}

/**
 * The first rows of a file, by which Spark infers how its variants are shredded: fields that many of them have, with one
 * type, become columns of the file.
 *
 * @param columns of the file, under their physical names
 */
private[write] final class FirstRows(columns: StructType) {
  import FirstRows._

  private val rows = ArrayBuffer.empty[InternalRow]
  private lazy val toUnsafe = UnsafeProjection.create(columns)
  private var bytes = 0L

  def add(row: InternalRow): Unit = {
    val stored = toUnsafe(row)
    bytes += stored.getSizeInBytes
    rows += stored.copy()
  }

  /** Whether there are as many as Spark considers when it shreds. */
  def areEnough: Boolean = rows.size >= MaxRows || bytes >= MaxBytes

  /** The configuration of Parquet's writer. */
  def configure(conf: Configuration): Configuration = {
    val shredding = new Configuration(conf)
    val schema = new InferVariantShreddingSchema(columns).inferSchema(rows.toSeq)
    ParquetWriteSupport.setShreddingSchema(schema, shredding)
    shredding
  }

  def foreach(use: InternalRow => Unit): Unit = rows.foreach(use)
}

private[write] object FirstRows {
  private val MaxRows = 4096
  private val MaxBytes = 64L << 20

  /** Whether there are variants that can be shredded: columns, and fields of structs. */
  def haveVariants(columns: StructType): Boolean = columns.exists(_.dataType match {
    case VariantType => true
    case struct: StructType => haveVariants(struct)
    case _ => false
  })
}
