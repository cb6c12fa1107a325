package io.deltaic.spark.scan

import scala.reflect.ClassTag

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.ParquetInputFormat
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

/** What Spark's readers of Parquet want of Hadoop's configuration. */
object ReadConfiguration {

  def of(stored: StructType): Configuration = {
    val hadoop = new Configuration()
    hadoop.set(ParquetInputFormat.READ_SUPPORT_CLASS, classOf[ParquetReadSupport].getName)
    hadoop.set(ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA, stored.json)
    hadoop.set(SQLConf.SESSION_LOCAL_TIMEZONE.key, "UTC")
    Seq(
      SQLConf.NESTED_SCHEMA_PRUNING_ENABLED,
      SQLConf.CASE_SENSITIVE,
      SQLConf.PARQUET_BINARY_AS_STRING,
      SQLConf.PARQUET_INT96_AS_TIMESTAMP,
      SQLConf.PARQUET_INFER_TIMESTAMP_NTZ_ENABLED,
      SQLConf.LEGACY_PARQUET_NANOS_AS_LONG,
      SQLConf.PARQUET_FIELD_ID_READ_ENABLED,
      SQLConf.IGNORE_MISSING_PARQUET_FIELD_ID
    ).foreach(entry => hadoop.setBoolean(entry.key, SQLConf.get.getConf(entry)))
    hadoop
  }
}

/** What every executor has already. */
final class Constantly[T: ClassTag](value: T) extends Broadcast[T](0L) {
  override protected def getValue(): T = value
  override protected def doUnpersist(blocking: Boolean): Unit = ()
  override protected def doDestroy(blocking: Boolean): Unit = ()
}
