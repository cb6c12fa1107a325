package io.deltaic.spark.schema

import java.time.ZoneId

import io.deltaic.protocol.AddFile

/**
 * The partition of a file by its typed values: writers differ in how they spell a value in the log.
 *
 * @param zone of the session, used to parse timestamps
 */
private[spark] final class PartitionKey(schema: TableSchema, zone: ZoneId) {

  /** The values of the partition columns, in their order; an unreadable value is an error. */
  def values(file: AddFile): Seq[Any] = schema.partition.fields.toSeq.map { field =>
    val text = file.partitionValues.getOrElse(schema.logName(field.name), null)
    PartitionValues.fromLog(field.name, field.dataType, text, zone)
  }

  /** Equal for files of the same partition. */
  def of(file: AddFile): Seq[Any] = values(file).map(PartitionKey.comparable)

  /** The values as Deltaic spells them in the log. */
  def inLog(file: AddFile): Seq[String] =
    schema.partition.fields.toSeq.zip(values(file)).map { case (field, value) =>
      PartitionValues.toLog(field.name, field.dataType, value)
    }
}

private[spark] object PartitionKey {

  /** As in Spark's grouping: all NaN are equal, and so are the two zeros. */
  def comparable(value: Any): Any = value match {
    case bytes: Array[Byte] => bytes.toSeq
    case float: Float => java.lang.Float.floatToIntBits(float + 0.0f)
    case double: Double => java.lang.Double.doubleToLongBits(double + 0.0d)
    case other => other
  }
}
