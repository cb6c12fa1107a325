package io.deltaic.upkeep

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path

import io.deltaic.log._
import io.deltaic.protocol._
import io.deltaic.replay.Snapshot

/**
 * Writes version checksum files, `00000000000000000007.crc`, by which readers tell whether they replay the log as its
 * writer did. Fields are those of delta-spark.
 *
 * @param guard see [[CheckpointWriter]]
 */
private[upkeep] final class ChecksumWriter(table: Path, store: LogStore, guard: () => Unit) {
  import ChecksumWriter._

  private val directory = FileNames.logDirectory(table)
  private val reader = new CommitReader(table, store)

  /** @param snapshot all of it in memory: to count the files of a checkpoint would cost each commit a read of it */
  def write(snapshot: Snapshot): Unit = write(snapshot.version, ofSnapshot(snapshot))

  /**
   * From the checksum of the version before and what the commit changed, for when the state is not at hand. Only for
   * commits of ours, which remove no file that is not there.
   */
  def writeFromPrevious(version: Long): Unit =
    for {
      earlier <- store.status(FileNames.checksum(directory, version - 1))
      previous <- VersionChecksum.read(store, earlier)
      commit <- store.status(FileNames.commit(directory, version))
      content <- ofPrevious(previous, reader.read(version, commit))
    } write(version, content)

  private def write(version: Long, content: Content): Unit = {
    val bytes = ActionJson.mapper.writeValueAsBytes(json(content))
    store.writeBesideIfAbsent(FileNames.checksum(directory, version), guard)(_.write(bytes))
    ()
  }
}

private object ChecksumWriter {

  /** The operation that adds files anew which are in the table. */
  private val Backfill = "ROW TRACKING BACKFILL"

  /** @param deletedRows with the number of deletion vectors, of tables that may have any */
  private final case class Content(
      numFiles: Long,
      sizeBytes: Long,
      deletedRows: Option[(Long, Long)],
      inCommitTimestampMs: Option[Long],
      protocol: Protocol,
      metadata: Metadata,
      transactions: Iterable[SetTransaction],
      domains: Iterable[DomainMetadata]
  )

  private def ofSnapshot(snapshot: Snapshot): Content = {
    val files = snapshot.filesInMemory
    Content(
      files.size.toLong,
      files.totalSizeBytes,
      Option.when(TableFeatures.supports(snapshot.protocol, "deletionVectors")) {
        (files.deletedRecords, files.withDeletionVectors.toLong)
      },
      Option.when(keepsTimestamps(snapshot.protocol, snapshot.metadata))(snapshot.timestampMs),
      snapshot.protocol,
      snapshot.metadata,
      snapshot.transactions.values,
      snapshot.domains.values
    )
  }

  /** None if the one or the other leaves anything open. */
  private def ofPrevious(previous: VersionChecksum, commit: CommitFile): Option[Content] = {
    val isBackfill = commit.commitInfo.flatMap(_.operation).contains(Backfill)
    val adds = if (isBackfill) Vector.empty else commit.adds.toVector
    val removes = commit.removes.toVector
    def vectors(files: Seq[FileAction]): Seq[DeletionVectorDescriptor] =
      files.flatMap(_.deletionVector)
    for {
      numFiles <- previous.numFiles
      sizeBytes <- previous.sizeBytes
      protocol <- commit.protocol.orElse(previous.protocol)
      metadata <- commit.metadata.orElse(previous.metadata)
      known <- previous.transactions
      domains <- previous.domains
      if removes.forall(_.sizeBytes.isDefined)
      timestampMs = commit.commitInfo.flatMap(_.inCommitTimestampMs)
      if timestampMs.isDefined || !keepsTimestamps(protocol, metadata)
    } yield {
      val transactions = commit.actions.collect { case t: SetTransaction => t }
      val newDomains = commit.actions.collect { case d: DomainMetadata => d }
      Content(
        numFiles + adds.size - removes.size,
        sizeBytes + adds.map(_.sizeBytes).sum - removes.flatMap(_.sizeBytes).sum,
        for (rows <- previous.numDeletedRecords; count <- previous.numDeletionVectors)
          yield (
            rows + vectors(adds).map(_.cardinality).sum - vectors(removes).map(_.cardinality).sum,
            count + vectors(adds).size - vectors(removes).size
          ),
        timestampMs.filter(_ => keepsTimestamps(protocol, metadata)),
        protocol,
        metadata,
        (known ++ transactions).map(t => t.appId -> t).toMap.values,
        (domains ++ newDomains).map(d => d.domain -> d).toMap.values.filterNot(_.removed)
      )
    }
  }

  private def keepsTimestamps(protocol: Protocol, metadata: Metadata): Boolean =
    TableFeatures.isActive(protocol, metadata, "inCommitTimestamp")

  private def json(content: Content): ObjectNode = {
    val json = ActionJson.mapper.createObjectNode()
    json.put("tableSizeBytes", content.sizeBytes)
    json.put("numFiles", content.numFiles)
    content.deletedRows.foreach { case (rows, vectors) =>
      json.put("numDeletedRecordsOpt", rows)
      json.put("numDeletionVectorsOpt", vectors)
    }
    json.put("numMetadata", 1L)
    json.put("numProtocol", 1L)
    content.inCommitTimestampMs.foreach(json.put("inCommitTimestampOpt", _))
    val transactions = json.putArray("setTransactions")
    content.transactions.toSeq.sortBy(_.appId).foreach(t => transactions.add(body(t)))
    val domains = json.putArray("domainMetadata")
    content.domains.toSeq.sortBy(_.domain).foreach(d => domains.add(body(d)))
    json.set[JsonNode]("metadata", body(content.metadata))
    json.set[JsonNode]("protocol", body(content.protocol))
    json
  }

  private def body(action: Action): JsonNode =
    ActionJson.mapper.readTree(ActionJson.write(action)).elements.next()
}
