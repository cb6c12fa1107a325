package io.deltaic.spark.write

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.CacheShims
import org.slf4j.LoggerFactory

/** A table in a plan, as far as data that was cached from it can become stale. */
private[spark] trait FollowsTable {

  /** The table's root directory. */
  def location: Path

  /** False for a version that was named, which no write changes. */
  def followsNewVersions: Boolean

  /** Data cached from this table is, from now on, that of `version`. */
  def refreshedTo(version: Long): Unit
}

/** The versions that data cached from a table stands for, which its copies in plans share. */
private[spark] final class CachedVersions(first: Long) {
  @volatile private var versions = Set(first)

  def add(version: Long): Unit = synchronized(versions += version)

  def meet(others: CachedVersions): Boolean = versions.exists(others.versions)
}

/** What the process has cached of tables, by path, by name, or through views. */
private[spark] object CachedPlans {
  private val logger = LoggerFactory.getLogger(getClass)

  /**
   * Computes anew, when next asked for, all that was cached from a table that now has `version`. A plan
   * that the table no longer fits is dropped.
   *
   * Nothing is thrown: the version exists, and who wrote it must not be told otherwise.
   */
  def refresh(spark: SparkSession, table: Path, version: Long): Unit =
    try
      CacheShims.recache(
        spark,
        {
          case cached: FollowsTable if cached.followsNewVersions && cached.location == table =>
            cached.refreshedTo(version)
            true
          case _ => false
        }
      )
    catch {
      case NonFatal(e) =>
        logger.warn(s"$table: a plan cached from it no longer fits version $version; dropped", e)
    }
}
