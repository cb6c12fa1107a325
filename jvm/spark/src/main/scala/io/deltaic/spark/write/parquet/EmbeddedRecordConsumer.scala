package io.deltaic.spark.write.parquet

import org.apache.parquet.io.api.{Binary, RecordConsumer}

/** Makes the fields of messages fields of a message that has been started already. */
private[parquet] final class EmbeddedRecordConsumer(message: RecordConsumer)
    extends RecordConsumer {

  override def startMessage(): Unit = ()
  override def endMessage(): Unit = ()

  override def startField(field: String, index: Int): Unit = message.startField(field, index)
  override def endField(field: String, index: Int): Unit = message.endField(field, index)
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
