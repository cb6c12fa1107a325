package io.deltaic.spark.catalog

import java.util.Locale

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Identifier
import org.apache.spark.sql.deltaic.WriteShims
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.SessionRequirements
import io.deltaic.spark.scan.FileSplits

/** A table that is there, and whether the catalog manages its files. */
private[spark] final case class ExistingTable(log: DeltaLog, isManaged: Boolean)

/** Finds the log of a table from what users write: a path, an option, or an identifier. */
private[spark] object TableLocation {

  /** The name that a data source, a table's provider or a namespace goes by. */
  val provider = "delta"

  def log(
      spark: SparkSession,
      path: String,
      options: Map[String, String] = Map.empty
  ): DeltaLog = {
    SessionRequirements.require(spark, path)
    val configuration = WriteShims.hadoopConf(spark, options)
    val unqualified = new Path(path)
    val qualified = unqualified.getFileSystem(configuration).makeQualified(unqualified)
    DeltaLog.forTable(qualified, configuration, SnapshotSettings.bytesInMemory(spark))
  }

  /**
   * The table at a path, or the version of one that the path's suffix asks for. A table whose own path
   * ends like that comes first.
   */
  def find(
      spark: SparkSession,
      path: String,
      options: Map[String, String] = Map.empty
  ): FoundTable = {
    val literal = log(spark, path, options)
    val travelled = TimeTravelSuffix.of(path).filterNot(_ => literal.exists).flatMap { suffix =>
      val base = log(spark, suffix.base, options)
      Option.when(base.exists)(FoundTable(base, Some(asOf(spark, base, suffix))))
    }
    travelled.getOrElse(FoundTable(literal, None))
  }

  /** What `load` and `save` name. */
  def find(spark: SparkSession, options: CaseInsensitiveStringMap): FoundTable = {
    if (options.containsKey("paths"))
      throw DeltaicException("DELTAIC_SEVERAL_PATHS", Map("paths" -> options.get("paths")))
    val path = Option(options.get("path")).filter(_.nonEmpty).getOrElse(
      throw DeltaicException("DELTAIC_PATH_MISSING", Map.empty)
    )
    find(spark, path, options.asCaseSensitiveMap.asScala.toMap)
  }

  def asOf(spark: SparkSession, log: DeltaLog, suffix: TimeTravelSuffix): AsOf =
    suffix.asOf(log, FileSplits.sessionZone(spark))

  def isDeltaic(provider: String): Boolean =
    provider != null && provider.toLowerCase(Locale.ROOT) == this.provider

  /** The path in ``delta.`/path` ``, which Spark parses as a table of that name. */
  def pathOf(identifier: Identifier): Option[String] =
    Option.when(mayBePath(identifier) && new Path(identifier.name).isAbsolute)(identifier.name)

  /** Whether it is a path, or a name in a database that is called as the provider is. */
  def mayBePath(identifier: Identifier): Boolean =
    identifier.namespace.length == 1 && isDeltaic(identifier.namespace.head) &&
    identifier.name.nonEmpty

  def requireExists(spark: SparkSession, log: DeltaLog): DeltaLog =
    if (log.exists) log else throw missing(spark, log)

  /** There is no table: perhaps because the path leads into one. */
  def missing(spark: SparkSession, log: DeltaLog): DeltaicThrowable =
    tableAbove(spark, log) match {
      case Some(table) => isInside(log.table, table)
      case None =>
        DeltaicException("DELTAIC_NOT_A_TABLE", Map("table" -> log.table.toString))
    }

  def isInside(path: Path, table: Path): DeltaicThrowable = {
    val inside = path.toUri.getPath.stripPrefix(table.toUri.getPath).stripPrefix("/")
    DeltaicException(
      "DELTAIC_PATH_INSIDE_TABLE",
      Map("path" -> path.toString, "table" -> table.toString, "inside" -> inside)
    )
  }

  /**
   * The table of which what `load` names is a partition, maybe with a suffix that asks for a version, and the
   * partition's path. None where a directory on the way is not one of a partition column.
   */
  def partition(
      spark: SparkSession,
      options: CaseInsensitiveStringMap
  ): Option[(FoundTable, Path)] = {
    val path = options.get("path")
    val settings = options.asCaseSensitiveMap.asScala.toMap
    val suffix = TimeTravelSuffix.of(path)
    val literal = log(spark, suffix.fold(path)(_.base), settings)
    tableAbove(spark, literal)
      .filter(TablePartition.segments(literal.table, _).forall(_.contains('=')))
      .map { table =>
        val found = log(spark, table.toString, settings)
        (FoundTable(found, suffix.map(asOf(spark, found, _))), literal.table)
      }
  }

  /** The nearest table that a path leads into. */
  def tableAbove(spark: SparkSession, log: DeltaLog): Option[Path] = {
    val configuration = WriteShims.hadoopConf(spark, Map.empty)
    // A directory above that may not be listed is no table that could be named.
    def isTable(directory: Path): Boolean =
      try new DeltaLog(directory, configuration).exists
      catch { case NonFatal(_) => false }
    Iterator.iterate(log.table.getParent)(_.getParent).takeWhile(_ != null).find(isTable)
  }
}

/**
 * A table as a user names it, whether it exists or not.
 *
 * @param suffix the version that the name asks for at its end
 * @param entry what the session catalog lists under the name, if it was found there
 */
private[spark] final case class FoundTable(
    log: DeltaLog,
    suffix: Option[AsOf],
    entry: Option[CatalogTable] = None
)
