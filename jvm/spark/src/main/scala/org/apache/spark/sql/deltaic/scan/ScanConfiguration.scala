package org.apache.spark.sql.deltaic.scan

import java.time.Duration

import scala.jdk.CollectionConverters._

import com.google.common.cache.{Cache, CacheBuilder}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.mapred.JobConf
import org.apache.parquet.hadoop.ParquetInputFormat
import org.apache.spark.JobArtifactSet
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.WriteInternals
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap
import org.apache.spark.util.SerializableConfiguration

/**
 * The Hadoop configuration of a scan in the executors: a broadcast that is shared by scans with
 * equal settings, and the settings of the readers of one scan.
 */
final class ScanConfiguration private (
    shared: Broadcast[SerializableConfiguration],
    readerSettings: Map[String, String]
) extends Serializable {

  /**
   * For file systems and codecs. Other scans share the object, so it must not be modified.
   */
  def hadoop: Configuration = shared.value.value

  /** A copy with the columns and session settings of the readers. */
  def newJob(): JobConf = {
    val job = new JobConf(hadoop)
    readerSettings.foreach { case (key, value) => job.set(key, value) }
    job
  }
}

object ScanConfiguration {

  /**
   * The settings that Spark's Parquet readers need to read some columns.
   *
   * @param byFieldId whether columns with a field id are found by it, and by nothing else: one that
   *   a file lacks, and every one of a file without ids, is null
   */
  def of(
      conf: SQLConf,
      shared: Broadcast[SerializableConfiguration],
      requested: StructType,
      byFieldId: Boolean
  ): ScanConfiguration = new ScanConfiguration(
    shared,
    Map(
      ParquetInputFormat.READ_SUPPORT_CLASS -> classOf[ParquetReadSupport].getName,
      ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA -> requested.json,
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
   * Broadcasts a session's Hadoop configuration with the options of a read, or returns the broadcast of an earlier
   * scan with equal settings: serializing about a thousand settings takes several milliseconds.
   *
   * @param ignored session settings that no reader uses, and that change often
   */
  def broadcast(
      spark: SparkSession,
      options: CaseInsensitiveStringMap,
      ignored: String*
  ): Broadcast[SerializableConfiguration] = {
    val hadoop = WriteInternals.hadoopConf(spark, options.asCaseSensitiveMap.asScala.toMap)
    ignored.foreach(hadoop.unset)
    val settings = new java.util.HashMap[String, String](hadoop.size * 2)
    hadoop.forEach(entry => settings.put(entry.getKey, entry.getValue))
    val artifacts =
      JobArtifactSet.getCurrentJobArtifactState.orElse(Option(spark.artifactManager.state))
    val key = Key(spark.sparkContext.applicationId, artifacts.map(_.uuid), settings)
    broadcasts.get(key, () => SerializableConfiguration.broadcast(spark.sparkContext, hadoop))
  }

  /**
   * @param artifacts identifies the class loader that executors use for the session: the first task
   *   that reads the configuration sets its class loader in it
   */
  private final case class Key(
      application: String,
      artifacts: Option[String],
      settings: java.util.Map[String, String]
  )

  private val MaxBroadcasts = 16L

  /** Less than the half hour after which executors drop the class loader of a session that is idle. */
  private val Idle = Duration.ofMinutes(10)

  /** Of some 100 KB each. */
  private val broadcasts: Cache[Key, Broadcast[SerializableConfiguration]] = CacheBuilder
    .newBuilder()
    .maximumSize(MaxBroadcasts)
    .expireAfterAccess(Idle)
    .build[Key, Broadcast[SerializableConfiguration]]()
}
