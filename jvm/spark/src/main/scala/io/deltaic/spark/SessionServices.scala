package io.deltaic.spark

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.deltaic.SessionInternals
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.spark.catalog.{DeltaicTable, TableServices}
import io.deltaic.spark.changes.ChangesTable
import io.deltaic.spark.sql.planning.DeletionVectorStrategy
import io.deltaic.spark.stream.TableStream

/** Loaded by [[TableServices]]. */
final class SessionServices extends TableServices {

  override def requireSession(spark: SparkSession, table: => String): Unit =
    SessionRequirements.require(spark, table)

  override def hasExtension(spark: SparkSession): Boolean =
    SessionInternals.plansWith(spark, DeletionVectorStrategy)

  override def stream(
      spark: SparkSession,
      table: DeltaicTable,
      options: CaseInsensitiveStringMap,
      checkpoint: String
  ): MicroBatchStream = TableStream.ofRows(spark, table, options, checkpoint)

  override def streamOfChanges(
      spark: SparkSession,
      table: DeltaicTable,
      changes: ChangesTable,
      options: CaseInsensitiveStringMap,
      checkpoint: String
  ): MicroBatchStream = TableStream.ofChanges(spark, table, changes, options, checkpoint)
}
