package io.deltaic.spark.write.parquet

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.api.WriteSupport.WriteContext
import org.apache.parquet.io.api.RecordConsumer
import org.apache.spark.sql.catalyst.{InternalRow, ProjectingInternalRow}
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport
import org.apache.spark.sql.types.{DataType, StructType}

/**
 * Writes rows as Spark's write support does, to the same bytes. The values of flat columns are written by one
 * [[FlatColumn]] each, without the closures that Spark's calls for each value; Spark's writes the other columns.
 *
 * @param conf complete for Spark's write support
 */
private[parquet] final class RowWriteSupport(conf: Configuration)
    extends WriteSupport[InternalRow] {

  private val schema = DataType.fromJson(conf.get(ParquetWriteSupport.SPARK_ROW_SCHEMA))
    .asInstanceOf[StructType]
  private val columns = FlatColumn.of(schema, conf)
  private val flat = columns.flatten.toArray
  private val others = {
    val positions = columns.indices.filter(columns(_).isEmpty)
    Option.when(positions.nonEmpty)(new OtherColumns(schema, positions, conf))
  }
  private val bySpark = new FieldIdWriteSupport
  private var consumer: RecordConsumer = _

  override def init(configuration: Configuration): WriteContext = bySpark.init(configuration)

  override def prepareForWrite(consumer: RecordConsumer): Unit = {
    this.consumer = consumer
    flat.foreach(_.consumer = consumer)
    others.foreach(_.prepareForWrite(consumer))
  }

  override def write(row: InternalRow): Unit = {
    consumer.startMessage()
    var i = 0
    while (i < flat.length) {
      val column = flat(i)
      if (!row.isNullAt(column.position)) column.write(row)
      i += 1
    }
    others.foreach(_.write(row))
    consumer.endMessage()
  }
}

/** Columns that Spark's write support writes, as fields of the messages of a consumer. */
private final class OtherColumns(
    schema: StructType,
    positions: IndexedSeq[Int],
    conf: Configuration
) {
  private val columns = StructType(positions.map(schema(_)))
  private val row = ProjectingInternalRow(columns, positions)
  private val support = {
    val ofColumns = new Configuration(conf)
    ParquetWriteSupport.setSchema(columns, ofColumns)
    val support = new ParquetWriteSupport
    support.init(ofColumns)
    support
  }

  def prepareForWrite(consumer: RecordConsumer): Unit =
    support.prepareForWrite(new FieldsOfMessage(consumer, positions.toArray))

  def write(whole: InternalRow): Unit = {
    row.project(whole)
    support.write(row)
  }
}
