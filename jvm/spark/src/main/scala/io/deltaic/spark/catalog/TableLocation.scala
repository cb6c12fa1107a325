package io.deltaic.spark.catalog

import java.util.Locale

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.DeltaicException
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.write.WriteTransaction

/** Finds the log of a table from what users write: a path, an option, or an identifier. */
private[spark] object TableLocation {

  /** The name that a data source, a table's provider or a namespace goes by. */
  val provider = "delta"

  def log(
      spark: SparkSession,
      path: String,
      options: Map[String, String] = Map.empty
  ): DeltaLog = {
    val configuration = WriteTransaction.hadoopConfiguration(spark, options)
    val unqualified = new Path(path)
    val qualified = unqualified.getFileSystem(configuration).makeQualified(unqualified)
    DeltaLog.forTable(qualified, configuration)
  }

  def log(spark: SparkSession, options: CaseInsensitiveStringMap): DeltaLog = {
    val path = Option(options.get("path")).getOrElse(
      throw new DeltaicException("DELTAIC_PATH_MISSING", Map.empty)
    )
    import scala.jdk.CollectionConverters._
    log(spark, path, options.asCaseSensitiveMap.asScala.toMap)
  }

  def isDeltaic(provider: String): Boolean =
    provider != null && provider.toLowerCase(Locale.ROOT) == this.provider

  /** The path in ``delta.`/path` ``, which Spark parses as a table of that name. */
  def pathOf(identifier: Identifier): Option[String] =
    Option.when(
      identifier.namespace.length == 1 && isDeltaic(identifier.namespace.head) &&
      new Path(identifier.name).isAbsolute
    )(identifier.name)

  def requireExists(log: DeltaLog): DeltaLog =
    if (log.exists) log
    else throw new DeltaicException("DELTAIC_NOT_A_TABLE", Map("table" -> log.table.toString))
}
