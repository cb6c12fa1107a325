package io.deltaic.upkeep

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import io.deltaic.log.{FileNames, LogStore, WriteOutcome}
import io.deltaic.protocol._
import io.deltaic.replay.Snapshot

/**
 * Writes the version checksum file of a snapshot, `00000000000000000007.crc`, by which readers tell whether they replay
 * the log as its writer did. Fields are those of delta-spark.
 */
private[upkeep] object ChecksumWriter {

  def write(snapshot: Snapshot, store: LogStore): WriteOutcome = {
    val path = FileNames.checksum(FileNames.logDirectory(snapshot.table), snapshot.version)
    store.writeIfAbsent(path, ActionJson.mapper.writeValueAsBytes(content(snapshot)))
  }

  private def content(snapshot: Snapshot): ObjectNode = {
    val files = snapshot.files
    val json = ActionJson.mapper.createObjectNode()
    json.put("tableSizeBytes", files.totalSizeBytes)
    json.put("numFiles", files.size.toLong)
    if (TableFeatures.supports(snapshot.protocol, "deletionVectors")) {
      json.put("numDeletedRecordsOpt", files.deletedRecords)
      json.put("numDeletionVectorsOpt", files.withDeletionVectors.toLong)
    }
    json.put("numMetadata", 1L)
    json.put("numProtocol", 1L)
    if (TableFeatures.isActive(snapshot.protocol, snapshot.metadata, "inCommitTimestamp"))
      json.put("inCommitTimestampOpt", snapshot.timestampMs)
    val transactions = json.putArray("setTransactions")
    snapshot.transactions.values.toSeq.sortBy(_.appId).foreach(t => transactions.add(body(t)))
    val domains = json.putArray("domainMetadata")
    snapshot.domains.values.toSeq.sortBy(_.domain).foreach(d => domains.add(body(d)))
    json.set[JsonNode]("metadata", body(snapshot.metadata))
    json.set[JsonNode]("protocol", body(snapshot.protocol))
    json
  }

  private def body(action: Action): JsonNode =
    ActionJson.mapper.readTree(ActionJson.write(action)).elements.next()
}
