package io.deltaic.spark.commit

import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.CacheInternals
import org.slf4j.LoggerFactory

import io.deltaic.spark.scan.files.{FollowsTable, LocalCommits}

/** The cached plans that read a table by path, by name, or through views. */
private[spark] object CachedPlans {
  private val logger = LoggerFactory.getLogger(getClass)

  /** Only a refresh acquires it: nothing that a refresh plans or runs waits for it. */
  private val refreshing = new ReentrantLock

  private val LockTimeoutSeconds = 60L

  /**
   * Invalidates the data cached from a table before the newest commit of this process to it, which is recomputed on use.
   * A plan that can no longer be analyzed is uncached.
   *
   * Nothing is thrown: the commit has succeeded, and an error would report that it failed.
   */
  def refresh(spark: SparkSession, table: Path): Unit =
    oneAtATime(recache(spark, table, follows(_, table)))

  /** The caller must hold the lock. */
  private def recache(spark: SparkSession, table: Path, isSelected: FollowsTable => Boolean): Unit =
    try {
      val newest = LocalCommits.of(table)
      // Tables get the version only after the older entry is removed: a query of it must not find that entry.
      val refreshed = CacheInternals.recache(
        spark,
        {
          case cached: FollowsTable => isSelected(cached)
          case _ => false
        }
      )
      val before = refreshed.before.collect { case t: FollowsTable if follows(t, table) => t }
      before.foreach(_.refreshedTo(newest))
      // A DataFrame that was cached, but not executed, still has the older table in its plan.
      for {
        newer <- refreshed.after.collect { case t: FollowsTable if follows(t, table) => t }
        older <- before
      } newer.replaces(older)
    } catch {
      case NonFatal(e) =>
        logger.warn(s"$table: cannot refresh a plan cached from it; the plan is uncached", e)
    }

  /**
   * The plan of a query without cached rows from before the newest commit of this process to their tables. Spark
   * removes an entry from the cache while it plans it again, as after each write by name: a concurrent refresh
   * does not find it.
   */
  def withFreshRows(spark: SparkSession, plan: LogicalPlan): LogicalPlan = {
    val read = CacheInternals.buildersIn(plan).map { case (builder, tables) =>
      builder -> tables.collect { case t: FollowsTable if t.followsNewVersions => t }
    }.filter(_._2.nonEmpty)
    val (builders, tables) = (read.map(_._1), read.flatMap(_._2))
    if (read.isEmpty || !tables.exists(isStale) && CacheInternals.areCurrent(spark, builders)) plan
    else
      oneAtATime {
        // Another query may have refreshed them while this one waited.
        tables.map(_.location).distinct
          .foreach(table => recache(spark, table, t => follows(t, table) && isStale(t)))
        CacheInternals.withCurrent(spark, plan, builders)
      }
  }

  private def isStale(cached: FollowsTable): Boolean =
    cached.followsNewVersions && cached.isCachedBefore(LocalCommits.of(cached.location))

  /**
   * While Spark plans an entry again, another refresh does not find it, and would leave it at the older
   * version. So refreshes wait for each other, but only up to a timeout, so that no write seems to hang.
   */
  private def oneAtATime[A](refresh: => A): A = {
    val isLocked =
      try refreshing.tryLock() || refreshing.tryLock(LockTimeoutSeconds, TimeUnit.SECONDS)
      catch {
        case _: InterruptedException =>
          Thread.currentThread().interrupt()
          false
      }
    try refresh
    finally if (isLocked) refreshing.unlock()
  }

  private def follows(cached: FollowsTable, table: Path): Boolean =
    cached.followsNewVersions && cached.location == table
}
