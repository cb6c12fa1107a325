package io.deltaic.log

import java.util.Locale

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import io.deltaic.protocol.DeltaicException

/**
 * Chooses the store for a scheme: the one that the session configures, else the one for the file system that usually
 * has this scheme (docs/decisions/0016).
 */
private[log] object LogStoreChoice {

  /** The names by which a setting can choose a built-in store. */
  private val named: Map[String, Configuration => LogStore] = Map(
    "rename" -> (new RenamingLogStore(_)),
    "conditionalPut" -> (new ObjectLogStore(_, ObjectLogStore.ConditionalPut)),
    "createIfAbsent" -> (new ObjectLogStore(_, ObjectLogStore.CreateIfAbsent))
  )

  private val byScheme: Map[String, String] = Map(
    "hdfs" -> "rename",
    "viewfs" -> "rename",
    // A created file is visible at once, still empty; the service refuses a rename if the name exists.
    "abfs" -> "rename",
    "abfss" -> "rename",
    "s3a" -> "conditionalPut",
    "s3" -> "conditionalPut",
    "gs" -> "createIfAbsent"
  )

  private val S3 = Set("s3", "s3a", "s3n")
  private val DynamoDb = "S3DynamoDBLogStore"

  /** delta-spark accepts them with and without Spark's prefix. */
  private val DynamoDbSettings =
    Seq("spark.io.delta.storage.S3DynamoDBLogStore.", "io.delta.storage.S3DynamoDBLogStore.")

  def apply(path: Path, conf: Configuration): LogStore = {
    val scheme = Option(path.toUri.getScheme)
      .getOrElse(org.apache.hadoop.fs.FileSystem.getDefaultUri(conf).getScheme)
      .toLowerCase(Locale.ROOT)
    ours(scheme, conf).orElse {
      requireNoDynamoDb(scheme, conf)
      olderName(scheme, conf)
    }.getOrElse {
      if (scheme == "file") LocalLogStore
      else byScheme.get(scheme).fold[LogStore](new ReadOnlyLogStore(conf))(named(_)(conf))
    }
  }

  private def ours(scheme: String, conf: Configuration): Option[LogStore] = {
    val setting = s"spark.deltaic.logStore.$scheme.impl"
    Option(conf.getTrimmed(setting)).map { name =>
      named.get(name).map(_(conf)).orElse(ofClass(name, conf)).getOrElse {
        throw DeltaicException(
          "DELTAIC_INVALID_SESSION_SETTING",
          Map(
            "setting" -> setting,
            "value" -> name,
            "reason" -> (s"it is one of ${named.keys.toSeq.sorted.mkString(", ")}, or a class that " +
              "extends io.deltaic.log.LogStore and takes a Hadoop Configuration")
          )
        )
      }
    }
  }

  /** delta-spark's setting usually names a class of delta-spark, which is ignored here. */
  private def olderName(scheme: String, conf: Configuration): Option[LogStore] =
    Option(conf.getTrimmed(s"spark.delta.logStore.$scheme.impl")).flatMap(ofClass(_, conf))

  /**
   * A configuration of delta-spark's multi-cluster store for S3 means that other writers commit through DynamoDB: they
   * would not detect our conditional put, and we would not see the commits in DynamoDB. This is checked before any file
   * system access.
   */
  private def requireNoDynamoDb(scheme: String, conf: Configuration): Unit = {
    def naming(setting: String): Option[String] =
      Option(conf.getTrimmed(setting)).filter(_.endsWith(DynamoDb)).map(_ => setting)
    val ofScheme = naming(s"spark.delta.logStore.$scheme.impl")
    def ofAll: Option[String] = naming("spark.delta.logStore.class").orElse(
      conf.iterator.asScala.map(_.getKey).find(key => DynamoDbSettings.exists(key.startsWith))
    )
    ofScheme.orElse(if (S3(scheme)) ofAll else None).foreach { setting =>
      throw DeltaicException(
        "DELTAIC_DYNAMODB_LOG_STORE",
        Map("setting" -> setting, "value" -> conf.getTrimmed(setting), "scheme" -> scheme)
      )
    }
  }

  private def ofClass(name: String, conf: Configuration): Option[LogStore] =
    Option(conf.getClassByNameOrNull(name))
      .filter(classOf[LogStore].isAssignableFrom)
      .map(_.getConstructor(classOf[Configuration]).newInstance(conf).asInstanceOf[LogStore])
}
