package org.apache.spark.sql.deltaic

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.MetadataLogFileIndex
import org.apache.spark.sql.execution.streaming.sinks.FileStreamSink

/** Folders that Spark's file sink writes. */
object StreamSinkInternals {

  /** The files that the log of the sink (`_spark_metadata`) lists; none if the folder has no such log. */
  def files(spark: SparkSession, folder: Path, conf: Configuration): Option[Seq[FileStatus]] =
    Option.when(FileStreamSink.hasMetadata(
      Seq(folder.toString),
      conf,
      spark.sessionState.conf
    ))(new MetadataLogFileIndex(spark, folder, Map.empty, None).allFiles())
}
