package io.deltaic.spark.write

import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.CacheShims
import org.slf4j.LoggerFactory

import io.deltaic.spark.scan.FollowsTable

/** What the process has cached of tables, by path, by name, or through views. */
private[spark] object CachedPlans {
  private val logger = LoggerFactory.getLogger(getClass)

  /** Only a refresh takes it: nothing that a refresh plans or runs waits for it. */
  private val refreshing = new ReentrantLock

  private val LongestWaitSeconds = 60L

  /**
   * Computes anew, when next asked for, all that was cached from a table that now has `version`. A plan
   * that the table no longer fits is dropped.
   *
   * Nothing is thrown: the version exists, and who wrote it must not be told otherwise.
   */
  def refresh(spark: SparkSession, table: Path, version: Long): Unit =
    try
      oneAtATime {
        // None has the version before the older entry is gone: a query that has it must not find that entry.
        val refreshed = CacheShims.recache(
          spark,
          {
            case cached: FollowsTable if follows(cached, table) =>
              cached.overtake()
              true
            case _ => false
          }
        )
        val before = refreshed.before.collect { case t: FollowsTable if follows(t, table) => t }
        before.foreach(_.refreshedTo(version))
        // A DataFrame that has been cached, but not executed, still has the older one in its plan.
        for {
          newer <- refreshed.after.collect { case t: FollowsTable if follows(t, table) => t }
          older <- before
        } newer.replaces(older)
      }
    catch {
      case NonFatal(e) =>
        logger.warn(s"$table: a plan cached from it no longer fits version $version; dropped", e)
    }

  /**
   * While Spark computes an entry anew, it is not among those that another refresh finds: that one would leave it
   * at the version it is computed from. So each waits for the other, but never so long that a write seems to hang.
   */
  private def oneAtATime(refresh: => Unit): Unit = {
    val isMine =
      try refreshing.tryLock() || refreshing.tryLock(LongestWaitSeconds, TimeUnit.SECONDS)
      catch {
        case _: InterruptedException =>
          Thread.currentThread().interrupt()
          false
      }
    try refresh
    finally if (isMine) refreshing.unlock()
  }

  private def follows(cached: FollowsTable, table: Path): Boolean =
    cached.followsNewVersions && cached.location == table
}
