package io.deltaic.spark.catalog

import java.util.ServiceLoader

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.spark.changes.ChangesTable

/**
 * What tables use of the packages above theirs. The implementation is named in `META-INF/services`, so that packages
 * depend on each other in one direction only.
 */
private[spark] trait TableServices {

  /**
   * Requires that a session has what Deltaic needs to read and write tables.
   *
   * @param table what the statement reads or writes, for the error
   */
  def requireSession(spark: SparkSession, table: => String): Unit

  /** Whether the session plans with Deltaic's extension. */
  def hasExtension(spark: SparkSession): Boolean

  /**
   * A table as the source of a stream.
   *
   * @param checkpoint the source's checkpoint directory
   */
  def stream(
      spark: SparkSession,
      table: DeltaicTable,
      options: CaseInsensitiveStringMap,
      checkpoint: String
  ): MicroBatchStream

  /**
   * The changes of a table as the source of a stream.
   *
   * @param changes has their columns
   */
  def streamOfChanges(
      spark: SparkSession,
      table: DeltaicTable,
      changes: ChangesTable,
      options: CaseInsensitiveStringMap,
      checkpoint: String
  ): MicroBatchStream
}

private[spark] object TableServices {
  lazy val current: TableServices = {
    val service = classOf[TableServices]
    val found = ServiceLoader.load(service, service.getClassLoader).iterator
    if (found.hasNext) found.next
    else
      throw new IllegalStateException(s"no implementation of ${service.getName} on the class path")
  }
}
