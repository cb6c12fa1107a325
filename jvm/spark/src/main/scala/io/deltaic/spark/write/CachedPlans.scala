package io.deltaic.spark.write

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.CacheShims
import org.slf4j.LoggerFactory

import io.deltaic.spark.scan.FollowsTable

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
    try {
      val refreshed = CacheShims.recache(
        spark,
        {
          case cached: FollowsTable if follows(cached, table) =>
            cached.refreshedTo(version)
            true
          case _ => false
        }
      )
      // A DataFrame that has been cached, but not executed, still has the older one in its plan.
      for {
        newer <- refreshed.after.collect { case t: FollowsTable if follows(t, table) => t }
        older <- refreshed.before.collect { case t: FollowsTable if follows(t, table) => t }
      } newer.replaces(older)
    } catch {
      case NonFatal(e) =>
        logger.warn(s"$table: a plan cached from it no longer fits version $version; dropped", e)
    }

  private def follows(cached: FollowsTable, table: Path): Boolean =
    cached.followsNewVersions && cached.location == table
}
