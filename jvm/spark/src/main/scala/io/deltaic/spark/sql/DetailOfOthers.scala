package io.deltaic.spark.sql

import java.time.Instant

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.{SchemaShims, WriteShims}

import io.deltaic.spark.catalog.TableLocation

/**
 * What `DESCRIBE DETAIL` tells of what is no Delta table, as delta-spark does: jobs ask it of every table
 * of a database, to learn which are. Columns without a value are null.
 */
private[spark] object DetailOfOthers {

  /** @return values by column; none if it is a Delta table, or nothing that can be described */
  def of(spark: SparkSession, described: LogicalPlan): Option[Map[String, Any]] = described match {
    case TableAtPath(path) => Option.when(isOfOthers(spark, path))(ofPath(path))
    case resolved: ResolvedTable => SchemaShims.listed(resolved.table).map(ofTable)
    case _ => None
  }

  /** A path into a Delta table is an error that names the table. */
  private def isOfOthers(spark: SparkSession, path: String): Boolean = {
    val log = TableLocation.log(spark, path)
    val files = log.table.getFileSystem(WriteShims.hadoopConf(spark, Map.empty))
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
