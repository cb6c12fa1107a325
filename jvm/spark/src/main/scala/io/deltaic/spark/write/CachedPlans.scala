package io.deltaic.spark.write

import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.CacheShims
import org.slf4j.LoggerFactory

import io.deltaic.spark.scan.{FollowsTable, LocalCommits}

/** What the process has cached of tables, by path, by name, or through views. */
private[spark] object CachedPlans {
  private val logger = LoggerFactory.getLogger(getClass)

  /** Only a refresh takes it: nothing that a refresh plans or runs waits for it. */
  private val refreshing = new ReentrantLock

  private val LongestWaitSeconds = 60L

  /**
   * Computes anew, when next asked for, all that was cached from a table before the newest commit of this process to it.
   * A plan that the table no longer fits is dropped.
   *
   * Nothing is thrown: the commit is there, and who made it must not be told otherwise.
   */
  def refresh(spark: SparkSession, table: Path): Unit =
    oneAtATime(recache(spark, table, follows(_, table)))

  /** Without a lock, which the caller has. */
  private def recache(spark: SparkSession, table: Path, isChosen: FollowsTable => Boolean): Unit =
    try {
      val newest = LocalCommits.of(table)
      // None has the version before the older entry is gone: a query that has it must not find that entry.
      val refreshed = CacheShims.recache(
        spark,
        {
          case cached: FollowsTable => isChosen(cached)
          case _ => false
        }
      )
      val before = refreshed.before.collect { case t: FollowsTable if follows(t, table) => t }
      before.foreach(_.refreshedTo(newest))
      // A DataFrame that has been cached, but not executed, still has the older one in its plan.
      for {
        newer <- refreshed.after.collect { case t: FollowsTable if follows(t, table) => t }
        older <- before
      } newer.replaces(older)
    } catch {
      case NonFatal(e) =>
        logger.warn(s"$table: a plan cached from it no longer fits; dropped", e)
    }

  /**
   * The plan of a query whose cached rows are none from before the newest commit of this process to their tables. Spark
   * takes an entry out of the cache while it plans it again, as it does after each write by a name: a refresh that
   * comes in between does not find it.
   */
  def withFreshRows(spark: SparkSession, plan: LogicalPlan): LogicalPlan = {
    val read = CacheShims.buildersIn(plan).map { case (builder, tables) =>
      builder -> tables.collect { case t: FollowsTable if t.followsNewVersions => t }
    }.filter(_._2.nonEmpty)
    val (builders, tables) = (read.map(_._1), read.flatMap(_._2))
    if (read.isEmpty || !tables.exists(isStale) && CacheShims.areCurrent(spark, builders)) plan
    else
      oneAtATime {
        // Another query may have refreshed them while this one waited.
        tables.map(_.location).distinct
          .foreach(table => recache(spark, table, t => follows(t, table) && isStale(t)))
        CacheShims.withCurrent(spark, plan, builders)
      }
  }

  private def isStale(cached: FollowsTable): Boolean =
    cached.followsNewVersions && cached.isCachedBefore(LocalCommits.of(cached.location))

  /**
   * While Spark computes an entry anew, it is not among those that another refresh finds: that one would leave it
   * at the version it is computed from. So each waits for the other, but never so long that a write seems to hang.
   */
  private def oneAtATime[A](refresh: => A): A = {
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
