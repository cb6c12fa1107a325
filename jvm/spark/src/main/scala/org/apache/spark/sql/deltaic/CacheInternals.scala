package org.apache.spark.sql.deltaic

import java.lang.reflect.{InvocationTargetException, Method}

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.execution.columnar.{CachedRDDBuilder, InMemoryRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.{CacheManager, CachedData, QueryExecution}

/**
 * Spark's cache of query results. Spark itself only refreshes entries cached under the name, or by
 * the same plan, that a write used.
 */
object CacheInternals {

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

  /** The cached rows of a plan. */
  def cached(spark: SparkSession, plan: LogicalPlan): Option[LogicalPlan] =
    cached(spark, plan, plan.output)

  private def cached(
      spark: SparkSession,
      plan: LogicalPlan,
      output: Seq[Attribute]
  ): Option[LogicalPlan] =
    spark.sharedState.cacheManager.lookupCachedData(spark, plan)
      .map(_.cachedRepresentation.withOutput(output))

  /**
   * Recomputes every cached plan that reads a table for which `isStale` is true; a plan that can no
   * longer be planned is dropped.
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

  /** The builder of each cache entry that a query reads, and the tables that the entry reads. */
  def buildersIn(query: LogicalPlan): Seq[(CachedRDDBuilder, Seq[Table])] =
    query.collect { case rows: InMemoryRelation =>
      rows.cacheBuilder -> tables(rows.cacheBuilder.logicalPlan)
    }

  /** Whether the current cache has entries for all these builders. */
  def areCurrent(spark: SparkSession, builders: Seq[CachedRDDBuilder]): Boolean =
    outdated(spark, builders).isEmpty

  /**
   * The query with the current cache entries for the plans of `builders`. Spark removes an entry
   * while it plans it again, and drops one that it cannot plan: the query itself computes what is
   * not cached.
   */
  def withCurrent(
      spark: SparkSession,
      query: LogicalPlan,
      builders: Seq[CachedRDDBuilder]
  ): LogicalPlan = {
    val replaced = outdated(spark, builders)
    def newest(rows: InMemoryRelation, plan: LogicalPlan): LogicalPlan =
      cached(spark, plan, rows.output).getOrElse {
        val computed = spark.sessionState.executePlan(plan).optimizedPlan
        val named = computed.output.zip(rows.output).map { case (column, shown) =>
          Alias(column, shown.name)(shown.exprId, shown.qualifier, Some(shown.metadata))
        }
        Project(named, computed)
      }
    query.transform {
      case rows: InMemoryRelation if replaced.exists(_ eq rows.cacheBuilder) =>
        newest(rows, rows.cacheBuilder.logicalPlan)
    }
  }

  private def outdated(
      spark: SparkSession,
      builders: Seq[CachedRDDBuilder]
  ): Seq[CachedRDDBuilder] = {
    val current =
      entries(spark, spark.sharedState.cacheManager).map(_.cachedRepresentation.cacheBuilder)
    builders.filterNot(builder => current.exists(_ eq builder))
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

  private def tables(entry: CachedData): Seq[Table] = tables(entry.plan)

  private def tables(plan: LogicalPlan): Seq[Table] =
    plan.collectWithSubqueries { case relation: DataSourceV2Relation => relation.table }

  private def recacheIf(
      spark: SparkSession,
      manager: CacheManager,
      condition: CachedData => Boolean
  ): Unit =
    try recacheByCondition.invoke(manager, spark, condition)
    catch { case e: InvocationTargetException => throw e.getCause }
}

/** The tables in cached plans before the refresh, and those in the plans that replaced them. */
final case class RefreshedTables(before: Seq[Table], after: Seq[Table])
