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
import org.apache.spark.sql.{Column, DataFrame}

/** Doors of the classic session that Spark keeps to itself. */
object SessionShims {

  /** Analyses `plan` and, when it is a command, runs it. */
  def run(spark: SparkSession, plan: LogicalPlan): DataFrame = Dataset.ofRows(spark, plan)

  /** `work`, which finds the settings of the session on whatever thread it runs. */
  def underSettingsOf[A](spark: SparkSession)(work: () => A): () => A = {
    val settings = spark.sessionState.conf
    () => SQLConf.withExistingConf(settings)(work())
  }

  /** `plan`, not to be analysed again if `original`, which it was made of, is not. */
  def analysedAs(original: LogicalPlan, plan: LogicalPlan): LogicalPlan = {
    if (original.analyzed) plan.setAnalyzed()
    plan
  }

  /** Whether plans of the session are made with a strategy, as with those of its extensions. */
  def plansWith(spark: SparkSession, strategy: SparkStrategy): Boolean =
    spark.sessionState.planner.strategies.contains(strategy)

  /** How many tasks that read a table run at a time, as far as the session knows. */
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

  /** A plan whose tables are looked up, and nothing else is done. */
  def analysed(spark: SparkSession, plan: LogicalPlan): LogicalPlan = {
    val found = spark.sessionState.analyzer.execute(plan)
    spark.sessionState.analyzer.checkAnalysis(found)
    found
  }

  def expression(spark: SparkSession, column: Column): Expression = spark.expression(column)

  /**
   * Refuses a name that `register` would not take, or one in a database that is not there. Asked before
   * the first commit: a table without an entry could not be dropped.
   */
  def requireRegistrable(spark: SparkSession, name: TableIdentifier): Unit = {
    val catalog = spark.sessionState.catalog
    catalog.getDatabaseMetadata(name.database.getOrElse(catalog.getCurrentDatabase))
    // As SessionCatalog has it, which checks the name only when it creates the entry.
    if (!name.table.matches("\\w+"))
      throw QueryCompilationErrors.invalidNameForTableOrDatabaseError(name.table)
  }

  /**
   * Registers a table whose data is already in place, which the public API refuses to do for a
   * managed table.
   */
  def register(spark: SparkSession, table: CatalogTable): Unit =
    spark.sessionState.catalog.createTable(table, ignoreIfExists = false, validateLocation = false)

  /** Lets a table of the session catalog lie somewhere else; nothing is moved. */
  def relocate(spark: SparkSession, table: TableIdentifier, location: URI): Unit = {
    val catalog = spark.sessionState.catalog
    val entry = catalog.getTableMetadata(table)
    catalog.alterTable(entry.withNewStorage(locationUri = Some(location)))
  }
}
