package io.deltaic.spark.bridge

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.classic.SparkSession

import io.deltaic.protocol._
import io.deltaic.replay.{DeltaLog, Snapshot}
import io.deltaic.spark.SessionSettings
import io.deltaic.upkeep.UpkeepState

/**
 * What Python would ask for next, told along with a question: an answer that it has need not be fetched
 * over the bridge, which costs more than the decision.
 */
private[spark] object Told {

  /** The session's own settings, and ours among them alone. */
  def session(spark: SparkSession): ObjectNode = Json.obj(
    "sparkVersion" -> spark.version,
    "settings" -> spark.conf.getAll.filter { case (name, _) => SessionSettings.isOurs(name) }
  )

  /** What a commit's upkeep depends on, as far as this process knows it. */
  def upkeep(log: DeltaLog): ObjectNode = Json.obj(
    "failed" -> UpkeepState.failed(log.table),
    "newestCheckpoint" -> UpkeepState.newestCheckpoint(log.table)
  )

  /** A version without its files, and with the progress of the applications asked for. */
  def header(snapshot: Snapshot, isAsked: String => Boolean): ObjectNode = {
    val transactions = snapshot.unexpiredTransactions(System.currentTimeMillis).collect {
      case (appId, progress) if isAsked(appId) => appId -> progress.version
    }
    header(
      snapshot.version,
      snapshot.timestampMs,
      snapshot.protocol,
      snapshot.metadata,
      snapshot.domains
    ).set[ObjectNode]("transactions", Json.of(transactions))
  }

  def header(
      version: Long,
      timestampMs: Long,
      protocol: Protocol,
      metadata: Metadata,
      domains: Map[String, DomainMetadata]
  ): ObjectNode = Json.obj(
    "version" -> version,
    "timestampMs" -> timestampMs,
    "protocol" -> ActionBody.write(protocol),
    "metaData" -> ActionBody.write(metadata),
    "domains" -> domains.map { case (name, domain) => name -> domain.configuration }
  )

  /** With the question what a write may do. */
  def beforeWrite(
      spark: SparkSession,
      snapshot: Option[Snapshot],
      isAsked: String => Boolean
  ): JsonNode =
    Json.obj("session" -> session(spark), "header" -> snapshot.map(header(_, isAsked)))

  /** With a finished write, for it to be committed. */
  def beforeCommit(spark: SparkSession, commit: PreparedCommit): ObjectNode = Json.obj(
    "session" -> session(spark),
    "upkeep" -> upkeep(commit.log),
    "summary" -> commit.outline
  )
}
