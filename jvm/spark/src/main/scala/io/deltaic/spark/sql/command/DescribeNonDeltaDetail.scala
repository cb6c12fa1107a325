package io.deltaic.spark.sql.command

import java.time.Instant

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{SchemaInternals, WriteInternals}

import io.deltaic.spark.catalog.TableLocation

/**
 * The result of `DESCRIBE DETAIL` for tables of other formats, as in delta-spark: jobs run it for every table
 * of a database, to find the Delta tables. Columns without a value are null.
 */
private[spark] object DescribeNonDeltaDetail {

  /** @return values by column; none if it is a Delta table, or cannot be described */
  def of(spark: SparkSession, described: LogicalPlan): Option[Map[String, Any]] = described match {
    case TableAtPath(path) => Option.when(isNonDelta(spark, path))(ofPath(path))
    case resolved: ResolvedTable => SchemaInternals.listed(resolved.table).map(ofTable)
    case _ => None
  }

  /** False for a path inside a Delta table, which is an error that names the table. */
  private def isNonDelta(spark: SparkSession, path: String): Boolean = {
    val log = TableLocation.log(spark, path)
    val files = log.table.getFileSystem(WriteInternals.hadoopConf(spark, Map.empty))
    !log.exists && files.exists(log.table) && TableLocation.tableAbove(spark, log).isEmpty
  }

  private def ofPath(path: String): Map[String, Any] =
    Map("location" -> path, "properties" -> Map.empty)

  private def ofTable(table: CatalogTable): Map[String, Any] = Map(
    "format" -> table.provider,
    "name" -> table.qualifiedName,
    "description" -> table.comment.getOrElse(""),
    "location" -> table.storage.locationUri.map(new Path(_).toString),
    "createdAt" -> Instant.ofEpochMilli(table.createTime).toString,
    "partitionColumns" -> table.partitionColumnNames,
    "properties" -> table.properties
  )
}
