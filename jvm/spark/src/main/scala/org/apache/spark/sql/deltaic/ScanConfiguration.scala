package org.apache.spark.sql.deltaic

import scala.jdk.CollectionConverters._
import scala.ref.WeakReference

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.mapred.JobConf
import org.apache.parquet.hadoop.ParquetInputFormat
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.parquet._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.SerializableConfiguration
import org.apache.spark.{JobArtifactSet, SparkContext}

/**
 * The Hadoop configuration of a scan in the executors: a broadcast of what the session says, which
 * other scans have as well, and what only the readers of this scan need.
 *
 * @param shared made by [[ScanConfiguration.broadcast]]; never changed
 * @param own laid over it for the readers
 */
final case class ScanConfiguration(
    shared: Broadcast[SerializableConfiguration],
    own: Map[String, String]
) {

  /** For file systems and codecs; it belongs to other scans, too, and must not be changed. */
  def hadoop: Configuration = shared.value.value

  /** A copy from which readers learn their columns and their session settings. */
  def newJob(): JobConf = {
    val job = new JobConf(hadoop)
    own.foreach { case (key, value) => job.set(key, value) }
    job
  }
}

object ScanConfiguration {

  /**
   * What Spark's Parquet readers need to read some columns.
   *
   * @param byFieldId whether columns with a field id are found by it, and by nothing else: one that
   *   a file lacks, and every one of a file without ids, is null
   */
  def of(
      conf: SQLConf,
      shared: Broadcast[SerializableConfiguration],
      requested: StructType,
      byFieldId: Boolean
  ): ScanConfiguration = ScanConfiguration(
    shared,
    Map(
      ParquetInputFormat.READ_SUPPORT_CLASS -> classOf[ParquetReadSupport].getName,
      ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA -> requested.json,
      ParquetWriteSupport.SPARK_ROW_SCHEMA -> requested.json,
      SQLConf.SESSION_LOCAL_TIMEZONE.key -> conf.sessionLocalTimeZone,
      SQLConf.NESTED_SCHEMA_PRUNING_ENABLED.key -> conf.nestedSchemaPruningEnabled.toString,
      SQLConf.CASE_SENSITIVE.key -> conf.caseSensitiveAnalysis.toString,
      SQLConf.PARQUET_BINARY_AS_STRING.key -> conf.isParquetBinaryAsString.toString,
      SQLConf.PARQUET_INT96_AS_TIMESTAMP.key -> conf.isParquetINT96AsTimestamp.toString,
      SQLConf.PARQUET_INFER_TIMESTAMP_NTZ_ENABLED.key ->
        conf.parquetInferTimestampNTZEnabled.toString,
      SQLConf.LEGACY_PARQUET_NANOS_AS_LONG.key -> conf.legacyParquetNanosAsLong.toString,
      SQLConf.PARQUET_FIELD_ID_READ_ENABLED.key -> byFieldId.toString,
      SQLConf.IGNORE_MISSING_PARQUET_FIELD_ID.key -> byFieldId.toString
    )
  )

  /**
   * The session's Hadoop configuration with the options of a read. To serialize one takes several
   * milliseconds, so one broadcast serves all scans that come upon equal settings.
   */
  def broadcast(
      spark: SparkSession,
      options: CaseInsensitiveStringMap
  ): Broadcast[SerializableConfiguration] = {
    val context = spark.sparkContext
    val hadoop =
      spark.sessionState.newHadoopConfWithOptions(options.asCaseSensitiveMap.asScala.toMap)
    // Executors load classes that a session brought along by a loader of that session alone.
    val artifacts = JobArtifactSet.getCurrentJobArtifactState.map(_.uuid)
    val settings = new java.util.HashMap[String, String](hadoop.size * 2)
    hadoop.forEach(entry => settings.put(entry.getKey, entry.getValue))
    broadcasts.synchronized {
      if (!owner.get.contains(context)) {
        broadcasts.clear()
        owner = WeakReference(context)
      }
      broadcasts.computeIfAbsent(
        (settings, artifacts),
        _ => SerializableConfiguration.broadcast(context, hadoop)
      )
    }
  }

  /** How many settings are remembered at a time, of some 100 KB each: sessions and options differ in few. */
  private val Remembered = 16

  private type Settings = (java.util.Map[String, String], Option[String])

  /** Those of the running application, the least recently used one first. */
  private val broadcasts =
    new java.util.LinkedHashMap[Settings, Broadcast[SerializableConfiguration]](16, 0.75f, true) {
      override def removeEldestEntry(
          eldest: java.util.Map.Entry[Settings, Broadcast[SerializableConfiguration]]
      ): Boolean = size > Remembered
    }

  private var owner = WeakReference.apply[SparkContext](null)
}
