package io.deltaic.spark.stream

import java.io.{InputStream, OutputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.ConcurrentModificationException

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog

import io.deltaic.protocol.DeltaicException

/**
 * The definitions of a table with which a stream has read it, the last of which is in use: files named 0, 1, ... in a
 * directory of the schema tracking location. Directory and files are those of delta-spark.
 *
 * @param table for errors
 */
private[spark] final class SchemaTrackingLog(spark: SparkSession, table: Path, directory: Path) {
  import SchemaTrackingLog._

  /** The last entry and its number. */
  def latest: Option[(Long, TrackedSchema)] =
    if (directory.getFileSystem(spark.sessionState.newHadoopConf()).exists(directory))
      read(entries(isReadOnly = true).getLatest())
    else None

  def entry(number: Long): Option[TrackedSchema] = read(entries(isReadOnly = true).get(number))

  /** Adds an entry, unless there is one with its number. */
  def add(number: Long, entry: TrackedSchema): Boolean =
    try entries(isReadOnly = false).add(number, entry)
    catch { case _: ConcurrentModificationException => false }

  override def toString: String = directory.toString

  private def read[A](entry: => A): A =
    try entry
    catch {
      case e: IllegalArgumentException =>
        throw DeltaicException(
          "DELTAIC_STREAM_SCHEMA_LOG_MALFORMED",
          Map("table" -> table.toString, "location" -> toString, "reason" -> e.getMessage),
          e
        )
    }

  private def entries(isReadOnly: Boolean): HDFSMetadataLog[TrackedSchema] =
    new HDFSMetadataLog[TrackedSchema](spark, directory.toString, isReadOnly) {

      override protected def serialize(entry: TrackedSchema, out: OutputStream): Unit =
        out.write(s"$FormatVersion\n${entry.json}".getBytes(UTF_8))

      override protected def deserialize(in: InputStream): TrackedSchema = {
        val text = new String(in.readAllBytes(), UTF_8)
        val (format, json) = text.span(_ != '\n')
        if (format != FormatVersion)
          throw new IllegalArgumentException(
            s"a file starts with '${format.take(20)}' instead of $FormatVersion"
          )
        TrackedSchema.read(json)
      }
    }
}

private[spark] object SchemaTrackingLog {
  private val FormatVersion = "v1"

  /**
   * @param location given by the user
   * @param trackingId tells apart the sources of a query that read the same table
   */
  def apply(
      spark: SparkSession,
      table: Path,
      tableId: String,
      location: String,
      trackingId: Option[String]
  ): SchemaTrackingLog = {
    val name = (Seq("_schema_log", tableId) ++ trackingId).mkString("_")
    new SchemaTrackingLog(spark, table, new Path(location, name))
  }
}
