package org.apache.spark.sql.deltaic.scan

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.vectorized.ColumnarBatch

/**
 * Lets Spark's readers of Parquet rows find columns by field id. These readers check the session's
 * settings for it, not those of the read, which suffice for the readers of batches.
 */
final class FieldIdReaderFactory(readers: PartitionReaderFactory) extends PartitionReaderFactory {

  override def supportColumnarReads(partition: InputPartition): Boolean =
    readers.supportColumnarReads(partition)

  override def createColumnarReader(partition: InputPartition): PartitionReader[ColumnarBatch] =
    readers.createColumnarReader(partition)

  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new FieldIdReader(readers.createReader(partition))
}

/** A reader opens its next file, and finds the columns there, when a row is requested. */
private final class FieldIdReader(rows: PartitionReader[InternalRow])
    extends PartitionReader[InternalRow] {

  private val settings = {
    val byFieldId = new SQLConf
    SQLConf.get.getAllConfs.foreach { case (key, value) =>
      if (key.startsWith("spark.sql.")) byFieldId.setConfString(key, value)
    }
    byFieldId.setConf(SQLConf.PARQUET_FIELD_ID_READ_ENABLED, true)
    byFieldId
  }

  override def next(): Boolean = SQLConf.withExistingConf(settings)(rows.next())
  override def get(): InternalRow = rows.get()
  override def close(): Unit = rows.close()
  override def currentMetricsValues(): Array[CustomTaskMetric] = rows.currentMetricsValues()
}
