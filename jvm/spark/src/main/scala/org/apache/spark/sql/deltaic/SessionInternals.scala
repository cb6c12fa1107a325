package org.apache.spark.sql.deltaic

import java.net.URI

import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.connector.catalog.{
  CatalogManager,
  CatalogPlugin,
  Identifier,
  LookupCatalog
}
import org.apache.spark.sql.errors.QueryCompilationErrors
import org.apache.spark.sql.execution.SparkStrategy
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{Column, DataFrame, classic}

/** Private entry points of the classic session. */
object SessionInternals {

  /** Analyzes `plan` and, when it is a command, runs it. */
  def run(spark: SparkSession, plan: LogicalPlan): DataFrame = Dataset.ofRows(spark, plan)

  /** The same, as a DataFrame of the classic session. */
  def classicRun(spark: SparkSession, plan: LogicalPlan): classic.DataFrame =
    Dataset.ofRows(spark, plan)

  /** The plan of a DataFrame: of a command, its result. */
  def planOf(df: DataFrame): LogicalPlan =
    df.asInstanceOf[classic.DataFrame].queryExecution.commandExecuted

  /** The plan, as that of a client's DataFrame whose columns name it by this number. */
  def withPlanId(plan: LogicalPlan, planId: Long): LogicalPlan = {
    plan.setTagValue(LogicalPlan.PLAN_ID_TAG, planId)
    plan
  }

  /** A session with a copy of the settings, temporary views and functions of this one. */
  def cloned(spark: SparkSession): SparkSession = spark.cloneSession()

  /** `work`, running under the settings of the session on any thread. */
  def underSettingsOf[A](spark: SparkSession)(work: () => A): () => A = {
    val settings = spark.sessionState.conf
    () => SQLConf.withExistingConf(settings)(work())
  }

  /** `plan`, marked as analyzed if `original`, from which it was derived, is. */
  def analyzedAs(original: LogicalPlan, plan: LogicalPlan): LogicalPlan = {
    if (original.analyzed) plan.setAnalyzed()
    plan
  }

  /** Whether plans of the session are made with a strategy, as with those of its extensions. */
  def plansWith(spark: SparkSession, strategy: SparkStrategy): Boolean =
    spark.sessionState.planner.strategies.contains(strategy)

  /** How many tasks can read a table at a time, by the session's settings. */
  def leafParallelism(spark: SparkSession): Int = spark.leafNodeDefaultParallelism

  def sessionCatalog(spark: SparkSession): CatalogPlugin =
    spark.sessionState.catalogManager.v2SessionCatalog

  /** The catalog that a name belongs to, and what the table is called there. */
  def identify(spark: SparkSession, name: Seq[String]): (CatalogPlugin, Identifier) = {
    object Lookup extends LookupCatalog {
      override protected val catalogManager: CatalogManager = spark.sessionState.catalogManager
    }
    Lookup.CatalogAndIdentifier.unapply(name).get
  }

  /** The analyzed plan, without execution. */
  def analyzed(spark: SparkSession, plan: LogicalPlan): LogicalPlan = {
    val found = spark.sessionState.analyzer.execute(plan)
    spark.sessionState.analyzer.checkAnalysis(found)
    found
  }

  def expression(spark: SparkSession, column: Column): Expression = spark.expression(column)

  /**
   * Rejects a name that `register` would not accept, or one in a database that does not exist.
   * Called before the first commit: a table without a catalog entry could not be dropped.
   */
  def requireRegistrable(spark: SparkSession, name: TableIdentifier): Unit = {
    val catalog = spark.sessionState.catalog
    catalog.getDatabaseMetadata(name.database.getOrElse(catalog.getCurrentDatabase))
    // As in SessionCatalog, which checks the name only when it creates the entry.
    if (!name.table.matches("\\w+"))
      throw QueryCompilationErrors.invalidNameForTableOrDatabaseError(name.table)
  }

  /**
   * Registers a table whose data already exists, which the public API rejects for a managed table.
   */
  def register(spark: SparkSession, table: CatalogTable): Unit =
    spark.sessionState.catalog.createTable(table, ignoreIfExists = false, validateLocation = false)

  /** Changes the location of a table in the session catalog; no data is moved. */
  def relocate(spark: SparkSession, table: TableIdentifier, location: URI): Unit = {
    val catalog = spark.sessionState.catalog
    val entry = catalog.getTableMetadata(table)
    catalog.alterTable(entry.withNewStorage(locationUri = Some(location)))
  }
}
