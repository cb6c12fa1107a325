package io.deltaic.spark.sql.command

import org.apache.spark.sql.catalyst.analysis.ResolvedTable
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol.DeltaicException
import io.deltaic.replay.DeltaLog
import io.deltaic.spark.catalog.{DeltaicTable, TableLocation}

/**
 * The table of a statement, which is not one on an older version.
 *
 * @param name in the catalog, if it was found there
 */
private[command] final case class CommandTarget(log: DeltaLog, name: Option[String])

private[command] object CommandTarget {

  /** @param table a [[TableAtPath]], or a resolved table */
  def of(spark: SparkSession, table: LogicalPlan, command: String): CommandTarget = table match {
    case TableAtPath(path) =>
      CommandTarget(TableLocation.requireExists(spark, TableLocation.log(spark, path)), None)
    case resolved: ResolvedTable =>
      val isNamed = TableLocation.pathOf(resolved.identifier).isEmpty
      CommandTarget(newestOf(resolved).log, Option.when(isNamed)(resolved.name))
    case other => throw new IllegalStateException(s"$command of ${other.nodeName}")
  }

  private def newestOf(resolved: ResolvedTable): DeltaicTable = resolved.table match {
    case table: DeltaicTable if table.followsNewVersions => table
    case other =>
      val found = other match {
        case older: DeltaicTable => s"version ${older.snapshot.version} of ${older.log.table}"
        case _ => "a table of another format"
      }
      throw DeltaicException(
        "DELTAIC_NAME_IS_NOT_A_TABLE",
        Map("name" -> resolved.name, "found" -> found)
      )
  }
}
