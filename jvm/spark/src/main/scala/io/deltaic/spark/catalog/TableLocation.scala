package io.deltaic.spark.catalog

import java.util.Locale

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.{Identifier, TableCatalog}
import org.apache.spark.sql.deltaic.WriteInternals
import org.apache.spark.sql.util.CaseInsensitiveStringMap

import io.deltaic.protocol.{DeltaicException, DeltaicThrowable}
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.scan.files.{FileSplits, SnapshotSettings}

/** An existing table, and whether it is a managed table of the catalog. */
private[spark] final case class ExistingTable(log: DeltaLog, isManaged: Boolean)

/** A catalog with Deltaic's tables in it. */
private[spark] trait DeltaTableCatalog extends TableCatalog {

  /** The existing Deltaic table under a name, or at the path that an identifier holds. */
  private[spark] def existing(identifier: Identifier): Option[ExistingTable]
}

/** Finds the log of a table by a path, an option, or an identifier. */
private[spark] object TableLocation {

  /** The name of the data source, of a table's provider, and of the namespace of paths. */
  val provider = "delta"

  def log(
      spark: SparkSession,
      path: String,
      options: Map[String, String] = Map.empty
  ): DeltaLog = {
    TableServices.current.requireSession(spark, path)
    val configuration = WriteInternals.hadoopConf(spark, options)
    val unqualified = new Path(path)
    val qualified = unqualified.getFileSystem(configuration).makeQualified(unqualified)
    DeltaLog.forTable(qualified, configuration, SnapshotSettings.maxInMemoryBytes(spark))
  }

  /**
   * The table at a path, or at the version of the path's time travel suffix. A table whose own path
   * ends with such a suffix takes precedence.
   */
  def find(
      spark: SparkSession,
      path: String,
      options: Map[String, String] = Map.empty
  ): LocatedTable = {
    val literal = log(spark, path, options)
    val travelled = TimeTravelSuffix.of(path).filterNot(_ => literal.exists).flatMap { suffix =>
      val base = log(spark, suffix.base, options)
      Option.when(base.exists)(LocatedTable(base, Some(asOf(spark, base, suffix))))
    }
    travelled.getOrElse(LocatedTable(literal, None))
  }

  /** The table of `load` and `save`. */
  def find(spark: SparkSession, options: CaseInsensitiveStringMap): LocatedTable = {
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

  /** The path in ``delta.`/path` ``, which Spark parses as a table of that name in the namespace `delta`. */
  def pathOf(identifier: Identifier): Option[String] =
    Option.when(mayBePath(identifier) && new Path(identifier.name).isAbsolute)(identifier.name)

  /** Whether it is a path, or a name in a database named as the provider. */
  def mayBePath(identifier: Identifier): Boolean =
    identifier.namespace.length == 1 && isDeltaic(identifier.namespace.head) &&
    identifier.name.nonEmpty

  def requireExists(spark: SparkSession, log: DeltaLog): DeltaLog =
    if (log.exists) log else throw notATableError(spark, log)

  /** The error for a path without a table; it may be a path inside a table. */
  def notATableError(spark: SparkSession, log: DeltaLog): DeltaicThrowable =
    tableAbove(spark, log) match {
      case Some(table) => insideTableError(log.table, table)
      case None =>
        DeltaicException("DELTAIC_NOT_A_TABLE", Map("table" -> log.table.toString))
    }

  def insideTableError(path: Path, table: Path): DeltaicThrowable = {
    val inside = path.toUri.getPath.stripPrefix(table.toUri.getPath).stripPrefix("/")
    DeltaicException(
      "DELTAIC_PATH_INSIDE_TABLE",
      Map("path" -> path.toString, "table" -> table.toString, "inside" -> inside)
    )
  }

  /**
   * The table of a partition that `load` reads by its path, possibly with a time travel suffix, and the
   * partition's path. None if a directory between the two is not one of a partition column.
   */
  def partition(
      spark: SparkSession,
      options: CaseInsensitiveStringMap
  ): Option[(LocatedTable, Path)] = {
    val path = options.get("path")
    val settings = options.asCaseSensitiveMap.asScala.toMap
    val suffix = TimeTravelSuffix.of(path)
    val literal = log(spark, suffix.fold(path)(_.base), settings)
    tableAbove(spark, literal)
      .filter(TablePartition.segments(literal.table, _).forall(_.contains('=')))
      .map { table =>
        val found = log(spark, table.toString, settings)
        (LocatedTable(found, suffix.map(asOf(spark, found, _))), literal.table)
      }
  }

  /** The nearest table that a path is inside of. */
  def tableAbove(spark: SparkSession, log: DeltaLog): Option[Path] = {
    val configuration = WriteInternals.hadoopConf(spark, Map.empty)
    // A directory that the user may not list is not reported as a table.
    def isTable(directory: Path): Boolean =
      try new DeltaLog(directory, configuration).exists
      catch { case NonFatal(_) => false }
    Iterator.iterate(log.table.getParent)(_.getParent).takeWhile(_ != null).find(isTable)
  }
}

/**
 * A table that a path or name refers to, whether it exists or not.
 *
 * @param suffix the version of the time travel suffix
 * @param entry its entry in the session catalog, if it was found by name
 */
private[spark] final case class LocatedTable(
    log: DeltaLog,
    suffix: Option[AsOf],
    entry: Option[CatalogTable] = None
)
