package io.delta.tables

import java.util.{HashMap => JHashMap, Map => JMap}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.functions.expr
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Column, DataFrame, SparkSession, classic}

import io.deltaic.spark.{RowLevelStatements, SessionTable}

/**
 * A Delta table, and the operations on it other than reading and writing DataFrames. [[DeltaTable.forPath]] and
 * [[DeltaTable.forName]] return one.
 *
 * Names and signatures are those of delta-spark 4.4.0. Each method runs the same command as the method of its name in
 * Python, whose documentation lists parameters, results and errors.
 *
 * {{{
 *   val table = DeltaTable.forPath(spark, "/data/orders")
 *   table.delete("day < '2020-01-01'")
 *   table.as("t").merge(changes.as("s"), "t.id = s.id")
 *     .whenMatched().updateAll()
 *     .whenNotMatched().insertAll()
 *     .execute()
 * }}}
 */
class DeltaTable private (
    @transient private val _table: SessionTable,
    private val aliasName: Option[String]
) extends Serializable {

  private[tables] def table: SessionTable = {
    if (_table == null) throw new IllegalStateException("DeltaTable cannot be used in executors")
    _table
  }

  /** The rows as the target of a change. */
  private[tables] def target: classic.DataFrame = aliased(table.target)

  private def aliased(df: classic.DataFrame): classic.DataFrame = aliasName.fold(df)(df.as(_))

  /** The same table under a name that conditions can use. */
  def as(alias: String): DeltaTable = new DeltaTable(table, Some(alias))

  /** The same table under a name that conditions can use. */
  def alias(alias: String): DeltaTable = as(alias)

  /** The rows of the newest version. */
  def toDF: DataFrame = aliased(table.rows)

  /** Deletes the files that no version within the retention needs. */
  def vacuum(retentionHours: Double): DataFrame = table.vacuum(Some(retentionHours))

  /** Deletes the files that no version within the table's retention needs. */
  def vacuum(): DataFrame = table.vacuum(None)

  /** The newest commits, newest first. */
  def history(limit: Int): DataFrame = table.history(Some(limit))

  /** The commits that the log still has, newest first. */
  def history(): DataFrame = table.history(None)

  /** One row that describes the table, as DESCRIBE DETAIL returns it. */
  def detail(): DataFrame = table.detail()

  /** Writes manifests, for engines that do not read the log; the mode is `symlink_format_manifest`. */
  def generate(mode: String): Unit = table.generate(mode)

  /** Deletes the rows for which the condition is true. */
  def delete(condition: String): Unit = delete(expr(condition))

  /** Deletes the rows for which the condition is true. */
  def delete(condition: Column): Unit = deleteWhere(Some(condition))

  /** Deletes all rows. */
  def delete(): Unit = deleteWhere(None)

  private def deleteWhere(condition: Option[Column]): Unit = {
    RowLevelStatements.delete(target, condition.orNull)
    ()
  }

  /** Compacts files, or orders rows. */
  def optimize(): DeltaOptimizeBuilder = new DeltaOptimizeBuilder(table)

  /** Sets columns of all rows. */
  def update(set: Map[String, Column]): Unit = updateWhere(None, set)

  /** Sets columns of all rows. */
  def update(set: JMap[String, Column]): Unit = updateWhere(None, set.asScala)

  /** Sets columns of the rows for which the condition is true. */
  def update(condition: Column, set: Map[String, Column]): Unit =
    updateWhere(Some(condition), set)

  /** Sets columns of the rows for which the condition is true. */
  def update(condition: Column, set: JMap[String, Column]): Unit =
    updateWhere(Some(condition), set.asScala)

  /** Sets columns of all rows to the values of SQL expressions. */
  def updateExpr(set: Map[String, String]): Unit = updateWhere(None, Assignments.parsed(set))

  /** Sets columns of all rows to the values of SQL expressions. */
  def updateExpr(set: JMap[String, String]): Unit =
    updateWhere(None, Assignments.parsed(set.asScala))

  /** Sets columns of the rows for which the condition is true to the values of SQL expressions. */
  def updateExpr(condition: String, set: Map[String, String]): Unit =
    updateWhere(Some(expr(condition)), Assignments.parsed(set))

  /** Sets columns of the rows for which the condition is true to the values of SQL expressions. */
  def updateExpr(condition: String, set: JMap[String, String]): Unit =
    updateWhere(Some(expr(condition)), Assignments.parsed(set.asScala))

  private def updateWhere(
      condition: Option[Column],
      set: scala.collection.Map[String, Column]
  ): Unit = {
    val (columns, values) = Assignments.lists(set)
    RowLevelStatements.update(target, condition.orNull, columns, values)
    ()
  }

  /** Builds a MERGE of a source into the table. */
  def merge(source: DataFrame, condition: String): DeltaMergeBuilder =
    merge(source, expr(condition))

  /** Builds a MERGE of a source into the table. */
  def merge(source: DataFrame, condition: Column): DeltaMergeBuilder =
    new DeltaMergeBuilder(this, source, condition)

  /** Restores the rows and the definition of an older version, in a new version. */
  def restoreToVersion(version: Long): DataFrame = table.restoreToVersion(version)

  /** Restores the newest version that was committed at or before a timestamp. */
  def restoreToTimestamp(timestamp: String): DataFrame = table.restoreToTimestamp(timestamp)

  /** Upgrades the protocol of the table; an upgrade cannot be undone. */
  def upgradeTableProtocol(readerVersion: Int, writerVersion: Int): Unit =
    table.upgradeProtocol(readerVersion, writerVersion)

  /** Adds a feature, and those that it requires, to the protocol of the table. */
  def addFeatureSupport(featureName: String): Unit = table.addFeature(featureName)

  /** Drops a feature; with `truncateHistory`, versions that use it are deleted. */
  def dropFeatureSupport(featureName: String, truncateHistory: Boolean): Unit =
    table.dropFeature(featureName, truncateHistory)

  /** Drops a feature; versions that use it are kept. */
  def dropFeatureSupport(featureName: String): Unit =
    dropFeatureSupport(featureName, truncateHistory = false)

  /** Clones the newest version to a path or a name. */
  def clone(
      target: String,
      isShallow: Boolean,
      replace: Boolean,
      properties: Map[String, String]
  ): DeltaTable = cloned(target, isShallow, replace, properties)

  /** Clones the newest version to a path or a name. */
  def clone(
      target: String,
      isShallow: Boolean,
      replace: Boolean,
      properties: JHashMap[String, String]
  ): DeltaTable = cloned(target, isShallow, replace, properties.asScala.toMap)

  /** Clones the newest version to a path or a name. */
  def clone(target: String, isShallow: Boolean, replace: Boolean): DeltaTable =
    cloned(target, isShallow, replace)

  /** Clones the newest version to a path or a name, which must not exist. */
  def clone(target: String, isShallow: Boolean): DeltaTable = cloned(target, isShallow)

  /** Clones an older version to a path or a name. */
  def cloneAtVersion(
      version: Long,
      target: String,
      isShallow: Boolean,
      replace: Boolean,
      properties: Map[String, String]
  ): DeltaTable = cloned(target, isShallow, replace, properties, version = Some(version))

  /** Clones an older version to a path or a name. */
  def cloneAtVersion(
      version: Long,
      target: String,
      isShallow: Boolean,
      replace: Boolean,
      properties: JHashMap[String, String]
  ): DeltaTable =
    cloned(target, isShallow, replace, properties.asScala.toMap, version = Some(version))

  /** Clones an older version to a path or a name. */
  def cloneAtVersion(
      version: Long,
      target: String,
      isShallow: Boolean,
      replace: Boolean
  ): DeltaTable = cloned(target, isShallow, replace, version = Some(version))

  /** Clones an older version to a path or a name, which must not exist. */
  def cloneAtVersion(version: Long, target: String, isShallow: Boolean): DeltaTable =
    cloned(target, isShallow, version = Some(version))

  /** Clones the version at a timestamp to a path or a name. */
  def cloneAtTimestamp(
      timestamp: String,
      target: String,
      isShallow: Boolean,
      replace: Boolean,
      properties: Map[String, String]
  ): DeltaTable = cloned(target, isShallow, replace, properties, timestamp = Some(timestamp))

  /** Clones the version at a timestamp to a path or a name. */
  def cloneAtTimestamp(
      timestamp: String,
      target: String,
      isShallow: Boolean,
      replace: Boolean,
      properties: JHashMap[String, String]
  ): DeltaTable =
    cloned(target, isShallow, replace, properties.asScala.toMap, timestamp = Some(timestamp))

  /** Clones the version at a timestamp to a path or a name. */
  def cloneAtTimestamp(
      timestamp: String,
      target: String,
      isShallow: Boolean,
      replace: Boolean
  ): DeltaTable = cloned(target, isShallow, replace, timestamp = Some(timestamp))

  /** Clones the version at a timestamp to a path or a name, which must not exist. */
  def cloneAtTimestamp(timestamp: String, target: String, isShallow: Boolean): DeltaTable =
    cloned(target, isShallow, timestamp = Some(timestamp))

  private def cloned(
      target: String,
      isShallow: Boolean,
      replaces: Boolean = false,
      properties: Map[String, String] = Map.empty,
      version: Option[Long] = None,
      timestamp: Option[String] = None
  ): DeltaTable = new DeltaTable(
    table.cloneTo(target, isShallow, replaces, properties, version, timestamp),
    None
  )
}

/** Finds, creates and converts tables. Methods without a session use the active one. */
object DeltaTable {

  private def of(table: SessionTable): DeltaTable = new DeltaTable(table, None)

  /** Converts Parquet files to a Delta table. */
  def convertToDelta(
      spark: SparkSession,
      identifier: String,
      partitionSchema: StructType
  ): DeltaTable = of(SessionTable.convert(spark, identifier, Some(partitionSchema.json)))

  /** Converts Parquet files to a Delta table. */
  def convertToDelta(
      spark: SparkSession,
      identifier: String,
      partitionSchema: String
  ): DeltaTable = of(SessionTable.convert(spark, identifier, Some(partitionSchema)))

  /** Converts Parquet files that are not partitioned to a Delta table. */
  def convertToDelta(spark: SparkSession, identifier: String): DeltaTable =
    of(SessionTable.convert(spark, identifier, None))

  /** The table at a path. */
  def forPath(path: String): DeltaTable = forPath(ActiveSession(), path)

  /** The table at a path. */
  def forPath(sparkSession: SparkSession, path: String): DeltaTable =
    of(SessionTable.forPath(sparkSession, path))

  /** The table at a path, with settings of the file system whose names begin with `fs.` or `dfs.`. */
  def forPath(
      sparkSession: SparkSession,
      path: String,
      hadoopConf: scala.collection.Map[String, String]
  ): DeltaTable = of(SessionTable.forPath(sparkSession, path, hadoopConf.toMap))

  /** The table at a path, with settings of the file system whose names begin with `fs.` or `dfs.`. */
  def forPath(
      sparkSession: SparkSession,
      path: String,
      hadoopConf: JMap[String, String]
  ): DeltaTable = forPath(sparkSession, path, hadoopConf.asScala)

  /** The table of this name in the catalog. */
  def forName(tableOrViewName: String): DeltaTable = forName(ActiveSession(), tableOrViewName)

  /** The table of this name in the catalog. */
  def forName(sparkSession: SparkSession, tableName: String): DeltaTable =
    of(SessionTable.forName(sparkSession, tableName))

  /** Whether there is a Delta table at a path. */
  def isDeltaTable(sparkSession: SparkSession, identifier: String): Boolean =
    SessionTable.isDeltaTable(sparkSession, identifier)

  /** Whether there is a Delta table at a path. */
  def isDeltaTable(identifier: String): Boolean = isDeltaTable(ActiveSession(), identifier)

  /** Builds a table, which must not exist. */
  def create(): DeltaTableBuilder = create(ActiveSession())

  /** Builds a table, which must not exist. */
  def create(spark: SparkSession): DeltaTableBuilder = new DeltaTableBuilder(spark, "CREATE TABLE")

  /** Builds a table if it does not exist. */
  def createIfNotExists(): DeltaTableBuilder = createIfNotExists(ActiveSession())

  /** Builds a table if it does not exist. */
  def createIfNotExists(spark: SparkSession): DeltaTableBuilder =
    new DeltaTableBuilder(spark, "CREATE TABLE IF NOT EXISTS")

  /** Builds a table in the place of one that exists. */
  def replace(): DeltaTableBuilder = replace(ActiveSession())

  /** Builds a table in the place of one that exists. */
  def replace(spark: SparkSession): DeltaTableBuilder =
    new DeltaTableBuilder(spark, "REPLACE TABLE")

  /** Builds a table, in the place of one that exists. */
  def createOrReplace(): DeltaTableBuilder = createOrReplace(ActiveSession())

  /** Builds a table, in the place of one that exists. */
  def createOrReplace(spark: SparkSession): DeltaTableBuilder =
    new DeltaTableBuilder(spark, "CREATE OR REPLACE TABLE")

  /** Builds a column of a table. */
  def columnBuilder(colName: String): DeltaColumnBuilder =
    columnBuilder(ActiveSession(), colName)

  /** Builds a column of a table. */
  def columnBuilder(spark: SparkSession, colName: String): DeltaColumnBuilder =
    new DeltaColumnBuilder(spark, colName)
}
