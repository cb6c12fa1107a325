package org.apache.spark.sql.deltaic

import java.lang.reflect.{InvocationTargetException, Method}

import scala.collection.mutable

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.{CacheManager, CachedData, QueryExecution}

/**
 * Spark's cache of query results, which only refreshes what is cached under the name, or by the very
 * plan, that a write used.
 */
object CacheShims {

  private lazy val recacheByCondition: Method = {
    val method = classOf[CacheManager].getDeclaredMethod(
      "recacheByCondition",
      classOf[SparkSession],
      classOf[CachedData => Boolean]
    )
    method.setAccessible(true)
    method
  }

  /** Whether rows of some part of a plan come from the cache. */
  def usesCache(spark: SparkSession, plan: LogicalPlan): Boolean = {
    val manager = spark.sharedState.cacheManager
    !manager.isEmpty && manager.useCachedData(QueryExecution.normalize(spark, plan))
      .collectWithSubqueries { case rows: InMemoryRelation => rows }.nonEmpty
  }

  /** The cached rows that are those of a plan. */
  def cached(spark: SparkSession, plan: LogicalPlan): Option[LogicalPlan] =
    spark.sharedState.cacheManager.lookupCachedData(spark, plan)
      .map(_.cachedRepresentation.withOutput(plan.output))

  /**
   * Computes anew every cached plan that reads a table for which `isStale` is true; one that cannot be
   * planned any more is dropped.
   */
  def recache(spark: SparkSession, isStale: Table => Boolean): RefreshedTables = {
    val manager = spark.sharedState.cacheManager
    if (manager.isEmpty) RefreshedTables(Nil, Nil)
    else {
      val (stale, others) = entries(spark, manager).partition(tables(_).count(isStale) > 0)
      // All at once: an entry must not be computed from another that is still to be refreshed.
      if (stale.nonEmpty) recacheIf(spark, manager, entry => stale.exists(_ eq entry))
      val refreshed =
        if (stale.isEmpty) Nil
        else entries(spark, manager).filterNot(entry => others.exists(_ eq entry))
      RefreshedTables(stale.flatMap(tables), refreshed.flatMap(tables))
    }
  }

  /**
   * The plan of a query with cached rows that are not stale. Those that are, `refresh` has computed again.
   *
   * @param isStale whether data cached from a table is out of date
   * @param refresh what to do about such tables
   * @param dropped what to throw if such data is no longer cached then
   */
  def withFreshRows(spark: SparkSession, plan: LogicalPlan)(
      isStale: Table => Boolean,
      refresh: Seq[Table] => Unit,
      dropped: Seq[Table] => Throwable
  ): LogicalPlan = {
    val manager = spark.sharedState.cacheManager
    val read =
      if (manager.isEmpty) Nil
      else plan.collect { case rows: InMemoryRelation => rows.cacheBuilder }
    val all = if (read.isEmpty) Nil else entries(spark, manager)
    val stale = for {
      entry <- all if read.exists(_ eq entry.cachedRepresentation.cacheBuilder)
      staleTables = tables(entry).filter(isStale) if staleTables.nonEmpty
    } yield entry -> staleTables
    def fresh(rows: InMemoryRelation): InMemoryRelation =
      stale.collectFirst {
        case (entry, staleTables) if entry.cachedRepresentation.cacheBuilder eq rows.cacheBuilder =>
          manager.lookupCachedData(spark, entry.plan)
            .map(_.cachedRepresentation.withOutput(rows.output))
            .getOrElse(throw dropped(staleTables))
      }.getOrElse(rows)
    if (stale.isEmpty) plan
    else {
      refresh(stale.flatMap { case (_, staleTables) => staleTables })
      plan.transform { case rows: InMemoryRelation => fresh(rows) }
    }
  }

  private def entries(spark: SparkSession, manager: CacheManager): Seq[CachedData] = {
    val found = mutable.ArrayBuffer.empty[CachedData]
    recacheIf(
      spark,
      manager,
      entry => {
        found += entry
        false
      }
    )
    found.toSeq
  }

  private def tables(entry: CachedData): Seq[Table] =
    entry.plan.collectWithSubqueries { case relation: DataSourceV2Relation => relation.table }

  private def recacheIf(
      spark: SparkSession,
      manager: CacheManager,
      condition: CachedData => Boolean
  ): Unit =
    try recacheByCondition.invoke(manager, spark, condition)
    catch { case e: InvocationTargetException => throw e.getCause }
}

/** The tables in cached plans before these were refreshed, and those in the plans that took their place. */
final case class RefreshedTables(before: Seq[Table], after: Seq[Table])
