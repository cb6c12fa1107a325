package io.deltaic.spark.commit

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.maintenance.MaintenanceState
import io.deltaic.protocol._
import io.deltaic.replay.{DeltaLog, Snapshot, TableSize, TableSummary}
import io.deltaic.spark.util.SessionSettings

/**
 * State that Python needs to serve a request, sent along with it. To fetch it over the bridge would cost more
 * than the decision itself.
 */
private[spark] object PrefetchedState {

  /** The session's settings of Deltaic, and the Spark version. */
  def session(spark: SparkSession): ObjectNode = Message.of("SessionState")(
    "sparkVersion" -> spark.version,
    "settings" -> spark.conf.getAll.filter { case (name, _) => SessionSettings.isOurs(name) }
  )

  /** The state that a commit's maintenance depends on, as far as this process has it. */
  def maintenance(log: DeltaLog): ObjectNode = Message.of("MaintenanceState")(
    "failed" -> MaintenanceState.failed(log.table),
    "newestCheckpoint" -> MaintenanceState.newestCheckpoint(log.table)
  )

  /** The non-file actions of a version, with the transactions of the requested applications. */
  def nonFileActions(snapshot: Snapshot, isRequested: String => Boolean): ObjectNode = {
    val transactions = snapshot.unexpiredTransactions(System.currentTimeMillis).collect {
      case (appId, progress) if isRequested(appId) => appId -> progress.version
    }
    tableSnapshot(
      snapshot.version,
      snapshot.timestampMs,
      snapshot.protocol,
      snapshot.metadata,
      snapshot.domains,
      transactions = transactions
    )
  }

  /** The non-file actions of a version with the number and size of its files, without transactions. */
  def nonFileActions(summary: TableSummary): ObjectNode = tableSnapshot(
    summary.version,
    summary.timestampMs,
    summary.protocol,
    summary.metadata,
    summary.domains,
    size = summary.size
  )

  private def tableSnapshot(
      version: Long,
      timestampMs: Long,
      protocol: Protocol,
      metadata: Metadata,
      domains: Map[String, DomainMetadata],
      transactions: Map[String, Long] = Map.empty,
      size: TableSize = TableSize(0, 0)
  ): ObjectNode = Message.of("TableSnapshot")(
    "version" -> version,
    "timestampMs" -> timestampMs,
    "protocol" -> ActionBody.write(protocol),
    "metaData" -> ActionBody.write(metadata),
    "numFiles" -> size.numFiles,
    "sizeBytes" -> size.sizeBytes,
    "transactions" -> transactions,
    "domains" -> domains.map { case (name, domain) => name -> domain.configuration }
  )

  /** Sent with the request to plan a write. */
  def beforeWrite(
      spark: SparkSession,
      snapshot: Option[Snapshot],
      isRequested: String => Boolean
  ): JsonNode =
    Message.of("PrefetchedState")(
      "session" -> session(spark),
      "snapshot" -> snapshot.map(nonFileActions(_, isRequested)),
      "isOfCommand" -> false
    )

  /**
   * Sent with a command on a table.
   *
   * @param newest the newest version; none if there is no table
   */
  def ofCommand(spark: SparkSession, log: DeltaLog, newest: Option[Snapshot]): ObjectNode =
    Message.of("PrefetchedState")(
      "session" -> session(spark),
      "snapshot" -> newest.map(nonFileActions(_, _ => false)),
      "maintenance" -> maintenance(log),
      "isOfCommand" -> true
    )

  /** Sent with the request to commit a finished write. */
  def beforeCommit(spark: SparkSession, commit: PreparedCommit): ObjectNode =
    Message.of("PrefetchedState")(
      "session" -> session(spark),
      "maintenance" -> maintenance(commit.log),
      "summary" -> commit.outline,
      "isOfCommand" -> false
    )
}
