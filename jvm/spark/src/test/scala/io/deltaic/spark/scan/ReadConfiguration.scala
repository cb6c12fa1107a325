package io.deltaic.spark.scan

import scala.reflect.ClassTag

import org.apache.hadoop.conf.Configuration
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.deltaic.scan.ScanConfiguration
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/** The configuration of readers of some columns, without a session. */
object ReadConfiguration {

  def of(stored: StructType): ScanConfiguration = {
    val conf = new SQLConf
    conf.setConf(SQLConf.SESSION_LOCAL_TIMEZONE, "UTC")
    val shared = new Constantly(new SerializableConfiguration(new Configuration()))
    ScanConfiguration.of(conf, shared, stored, byFieldId = false)
  }
}

/** The configuration that every executor already has. */
final class Constantly[T: ClassTag](value: T) extends Broadcast[T](0L) {
  override protected def getValue(): T = value
  override protected def doUnpersist(blocking: Boolean): Unit = ()
  override protected def doDestroy(blocking: Boolean): Unit = ()
}
