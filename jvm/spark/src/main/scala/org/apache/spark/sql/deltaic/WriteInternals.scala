package org.apache.spark.sql.deltaic

import org.apache.hadoop.conf.Configuration
import org.apache.spark.TaskContext
import org.apache.spark.sql.errors.QueryExecutionErrors
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{SparkSession, classic}

/** The internals of Spark that the data writers need. */
object WriteInternals {

  def sqlConf(spark: SparkSession): SQLConf = sessionOf(spark).sessionState.conf

  /** A copy of the session's Hadoop configuration, overridden by a write's options. */
  def hadoopConf(spark: SparkSession, options: Map[String, String]): Configuration =
    sessionOf(spark).sessionState.newHadoopConfWithOptions(options)

  /**
   * Adds to the output metrics of the running task; a no-op outside of a task.
   */
  def addOutputMetrics(bytes: Long, rows: Long): Unit =
    Option(TaskContext.get()).foreach { task =>
      val metrics = task.taskMetrics().outputMetrics
      metrics.setBytesWritten(metrics.bytesWritten + bytes)
      metrics.setRecordsWritten(metrics.recordsWritten + rows)
    }

  /**
   * Runs `action` when the running task ends, if it has failed or was killed meanwhile. Spark drops the
   * result of such a task even if it is complete, and does not notify the writer.
   */
  def onFailedTask(action: () => Unit): Unit =
    Option(TaskContext.get()).foreach {
      _.addTaskCompletionListener[Unit] { task =>
        if (task.isFailed() || task.isInterrupted()) action()
      }
    }

  /** Spark's error if two source rows of a MERGE change the same row of the table. */
  def matchedTwice: RuntimeException = QueryExecutionErrors.mergeCardinalityViolationError()

  private def sessionOf(spark: SparkSession): classic.SparkSession =
    spark.asInstanceOf[classic.SparkSession]
}
