package io.deltaic.spark.write.parquet

import org.apache.parquet.io.api.{Binary, RecordConsumer}

/**
 * Consumes messages as a part of others: their fields become fields of a message that has been started.
 *
 * @param positions of each field in the message that it becomes a part of
 */
private[parquet] final class FieldsOfMessage(message: RecordConsumer, positions: Array[Int])
    extends RecordConsumer {

  /** How many fields enclose the current position. */
  private var depth = 0

  override def startMessage(): Unit = ()
  override def endMessage(): Unit = ()

  override def startField(field: String, index: Int): Unit = {
    message.startField(field, position(index))
    depth += 1
  }

  override def endField(field: String, index: Int): Unit = {
    depth -= 1
    message.endField(field, position(index))
  }

  private def position(index: Int): Int = if (depth == 0) positions(index) else index

  override def startGroup(): Unit = message.startGroup()
  override def endGroup(): Unit = message.endGroup()
  override def addInteger(value: Int): Unit = message.addInteger(value)
  override def addLong(value: Long): Unit = message.addLong(value)
  override def addBoolean(value: Boolean): Unit = message.addBoolean(value)
  override def addBinary(value: Binary): Unit = message.addBinary(value)
  override def addFloat(value: Float): Unit = message.addFloat(value)
  override def addDouble(value: Double): Unit = message.addDouble(value)
  override def flush(): Unit = message.flush()
}
