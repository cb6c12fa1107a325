package io.deltaic.spark.write.parquet

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.api.WriteSupport.WriteContext
import org.apache.parquet.io.api.RecordConsumer
import org.apache.spark.sql.catalyst.{InternalRow, ProjectingInternalRow}
import org.apache.spark.sql.types.StructType

/**
 * Writes rows as Spark's write support does, to the same bytes. The values of primitive columns are written by one
 * [[PrimitiveColumnWriter]] each, without the closures that Spark's calls for each value. Spark's writes the other
 * columns (docs/decisions/0051-rows-are-written-column-by-column.md).
 *
 * Within a row, primitive columns come first, wherever they are in the file.
 */
private[parquet] final class RowWriteSupport(bySpark: FieldIdWriteSupport)
    extends WriteSupport[InternalRow] {

  private var primitives: Array[PrimitiveColumnWriter] = _
  private var others: Option[OtherColumns] = None
  private var consumer: RecordConsumer = _

  override def init(conf: Configuration): WriteContext = {
    val context = bySpark.init(conf)
    val schema = bySpark.columns
    primitives = PrimitiveColumnWriter.of(schema, conf)
    others = Option.when(primitives.length < schema.length) {
      new OtherColumns(schema, primitives.map(_.position).toSet)
    }
    context
  }

  override def prepareForWrite(consumer: RecordConsumer): Unit = {
    this.consumer = consumer
    primitives.foreach(_.consumer = consumer)
    bySpark.prepareForWrite(new EmbeddedRecordConsumer(consumer))
  }

  override def write(row: InternalRow): Unit = {
    consumer.startMessage()
    var i = 0
    while (i < primitives.length) {
      val column = primitives(i)
      if (!row.isNullAt(column.position)) column.write(row)
      i += 1
    }
    if (others.isDefined) {
      others.get.project(row)
      bySpark.write(others.get)
    }
    consumer.endMessage()
  }
}

/**
 * A row for which the values of some columns are null.
 *
 * @param hidden the positions of these columns
 */
private final class OtherColumns(schema: StructType, hidden: Set[Int])
    extends ProjectingInternalRow(schema, schema.indices) {

  private val isHidden = schema.indices.map(hidden).toArray

  override def isNullAt(ordinal: Int): Boolean = isHidden(ordinal) || super.isNullAt(ordinal)
}
