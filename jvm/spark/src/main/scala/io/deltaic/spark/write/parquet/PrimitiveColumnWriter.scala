package io.deltaic.spark.write.parquet

import org.apache.hadoop.conf.Configuration
import org.apache.parquet.io.api.{Binary, RecordConsumer}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.internal.{LegacyBehaviorPolicy, SQLConf}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

/**
 * Writes the values of a primitive column.
 *
 * @param position in rows and in the schema of the file
 */
private[parquet] sealed abstract class PrimitiveColumnWriter(val position: Int, name: String) {

  /** Consumes the values. */
  var consumer: RecordConsumer = _

  /** @param row in which the column is not null */
  final def write(row: InternalRow): Unit = {
    consumer.startField(name, position)
    add(row)
    consumer.endField(name, position)
  }

  protected def add(row: InternalRow): Unit
}

private[parquet] object PrimitiveColumnWriter {

  /**
   * The writers of the primitive columns of a schema, whose consumer is yet to be set. Nested columns have none, nor have
   * those whose values Spark checks or converts when it writes them.
   *
   * @param conf complete for Spark's write support
   */
  def of(schema: StructType, conf: Configuration): Array[PrimitiveColumnWriter] = {
    val isRebaseDisabled =
      conf.get(SQLConf.PARQUET_REBASE_MODE_IN_WRITE.key) == LegacyBehaviorPolicy.CORRECTED.toString
    schema.fields.zipWithIndex.flatMap { case (field, i) =>
      val name = field.name
      Option(field.dataType).collect {
        case BooleanType => new Booleans(i, name)
        case ByteType => new Bytes(i, name)
        case ShortType => new Shorts(i, name)
        case IntegerType | _: YearMonthIntervalType => new Ints(i, name)
        case DateType if isRebaseDisabled => new Ints(i, name)
        case LongType | TimestampNTZType | _: DayTimeIntervalType => new Longs(i, name)
        case TimestampType if isRebaseDisabled => new Longs(i, name)
        case FloatType => new Floats(i, name)
        case DoubleType => new Doubles(i, name)
        case _: StringType => new Strings(i, name)
        case BinaryType => new Binaries(i, name)
        case decimal: DecimalType if decimal.precision <= Decimal.MAX_INT_DIGITS =>
          new IntDecimals(i, name, decimal)
        case decimal: DecimalType if decimal.precision <= Decimal.MAX_LONG_DIGITS =>
          new LongDecimals(i, name, decimal)
      }
    }
  }

  private final class Booleans(i: Int, name: String) extends PrimitiveColumnWriter(i, name) {
    override protected def add(row: InternalRow): Unit = consumer.addBoolean(row.getBoolean(i))
  }

  private final class Bytes(i: Int, name: String) extends PrimitiveColumnWriter(i, name) {
    override protected def add(row: InternalRow): Unit = consumer.addInteger(row.getByte(i).toInt)
  }

  private final class Shorts(i: Int, name: String) extends PrimitiveColumnWriter(i, name) {
    override protected def add(row: InternalRow): Unit = consumer.addInteger(row.getShort(i).toInt)
  }

  private final class Ints(i: Int, name: String) extends PrimitiveColumnWriter(i, name) {
    override protected def add(row: InternalRow): Unit = consumer.addInteger(row.getInt(i))
  }

  private final class Longs(i: Int, name: String) extends PrimitiveColumnWriter(i, name) {
    override protected def add(row: InternalRow): Unit = consumer.addLong(row.getLong(i))
  }

  private final class Floats(i: Int, name: String) extends PrimitiveColumnWriter(i, name) {
    override protected def add(row: InternalRow): Unit = consumer.addFloat(row.getFloat(i))
  }

  private final class Doubles(i: Int, name: String) extends PrimitiveColumnWriter(i, name) {
    override protected def add(row: InternalRow): Unit = consumer.addDouble(row.getDouble(i))
  }

  private final class Strings(i: Int, name: String) extends PrimitiveColumnWriter(i, name) {

    /** For short strings that are not in an array of bytes, such as those of sorted rows. */
    private val copied = new Array[Byte](1024)

    override protected def add(row: InternalRow): Unit = {
      val string = row.getUTF8String(i)
      val size = string.numBytes
      consumer.addBinary(string.getBaseObject match {
        case bytes: Array[Byte] =>
          val start = (string.getBaseOffset - Platform.BYTE_ARRAY_OFFSET).toInt
          Binary.fromReusedByteArray(bytes, start, size)
        case _ if size > copied.length => Binary.fromReusedByteArray(string.getBytes)
        case _ =>
          string.writeToMemory(copied, Platform.BYTE_ARRAY_OFFSET)
          Binary.fromReusedByteArray(copied, 0, size)
      })
    }
  }

  private final class Binaries(i: Int, name: String) extends PrimitiveColumnWriter(i, name) {
    override protected def add(row: InternalRow): Unit =
      consumer.addBinary(Binary.fromReusedByteArray(row.getBinary(i)))
  }

  private final class IntDecimals(i: Int, name: String, decimal: DecimalType)
      extends PrimitiveColumnWriter(i, name) {
    override protected def add(row: InternalRow): Unit = consumer.addInteger(
      row.getDecimal(i, decimal.precision, decimal.scale).toUnscaledLong.toInt
    )
  }

  private final class LongDecimals(i: Int, name: String, decimal: DecimalType)
      extends PrimitiveColumnWriter(i, name) {
    override protected def add(row: InternalRow): Unit =
      consumer.addLong(row.getDecimal(i, decimal.precision, decimal.scale).toUnscaledLong)
  }
}
