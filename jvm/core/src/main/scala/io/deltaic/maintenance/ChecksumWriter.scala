package io.deltaic.maintenance

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.fs.Path

import io.deltaic.log._
import io.deltaic.protocol._
import io.deltaic.replay.Snapshot

/**
 * Writes version checksum files, `00000000000000000007.crc`, with which readers verify their replay of the log. The
 * fields are those of delta-spark.
 *
 * @param guard see [[CheckpointWriter]]
 */
private[maintenance] final class ChecksumWriter(table: Path, store: LogStore, guard: () => Unit) {
  import ChecksumWriter._

  private val directory = FileNames.logDirectory(table)
  private val reader = new CommitReader(table, store)

  /** @param snapshot completely in memory: counting the files of a checkpoint would require each commit to read it */
  def write(snapshot: Snapshot): Unit = write(snapshot.version, ofSnapshot(snapshot))

  /**
   * Derives the checksum from that of the previous version and the actions of the commit, if no snapshot is in memory.
   * Only for commits of this engine, which remove a file that is not in the table only if they take a compaction back
   * (docs/decisions/0049).
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

  /** The operations that add files again that are already in the table. */
  private val Backfills = Set("ROW TRACKING BACKFILL", "ROW TRACKING UNBACKFILL")

  /**
   * Above these limits they are left out, as in delta-spark: every checksum would repeat them, and every reader would
   * parse them.
   */
  private val MaxTransactions = 100
  private val MaxDomains = 10

  /**
   * @param deletedRows with the number of deletion vectors, for tables that may have any
   * @param transactions None if they are left out
   * @param domains None if they are left out
   */
  private final case class Content(
      numFiles: Long,
      sizeBytes: Long,
      deletedRows: Option[(Long, Long)],
      inCommitTimestampMs: Option[Long],
      protocol: Protocol,
      metadata: Metadata,
      transactions: Option[Iterable[SetTransaction]],
      domains: Option[Iterable[DomainMetadata]]
  )

  private def ofSnapshot(snapshot: Snapshot): Content = {
    val files = snapshot.filesInMemory
    Content(
      files.size.toLong,
      files.totalSizeBytes,
      Option.when(TableFeatures.isListed(snapshot.protocol, "deletionVectors")) {
        (files.deletedRecords, files.withDeletionVectors.toLong)
      },
      Option.when(keepsTimestamps(snapshot.protocol, snapshot.metadata))(snapshot.timestampMs),
      snapshot.protocol,
      snapshot.metadata,
      retained(snapshot.transactions.values, snapshot.metadata),
      Some(snapshot.domains.values).filter(_.size <= MaxDomains)
    )
  }

  /** None if there are too many, or if transactions expire: the set then depends on the time of the read. */
  private def retained(
      transactions: Iterable[SetTransaction],
      metadata: Metadata
  ): Option[Iterable[SetTransaction]] = Some(transactions).filter { all =>
    all.size <= MaxTransactions && TableProperties.transactionRetentionMs(metadata).isEmpty
  }

  /** None if a required field is in neither the previous checksum nor the commit. */
  private def ofPrevious(previous: VersionChecksum, commit: CommitFile): Option[Content] = {
    val isBackfill = commit.commitInfo.flatMap(_.operation).exists(Backfills)
    val adds = if (isBackfill) Vector.empty else commit.adds.toVector
    val removes = commit.removes.toVector
    def vectors(files: Seq[FileAction]): Seq[DeletionVectorDescriptor] =
      files.flatMap(_.deletionVector)
    for {
      numFiles <- previous.numFiles
      sizeBytes <- previous.sizeBytes
      protocol <- commit.protocol.orElse(previous.protocol)
      metadata <- commit.metadata.orElse(previous.metadata)
      if removes.forall(_.sizeBytes.isDefined) && removes.map(_.dataChange).distinct.size < 2
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
        previous.transactions.flatMap { earlier =>
          retained((earlier ++ transactions).map(t => t.appId -> t).toMap.values, metadata)
        },
        previous.domains
          .map(earlier => (earlier ++ newDomains).map(d => d.domain -> d).toMap.values)
          .map(_.filterNot(_.removed))
          .filter(_.size <= MaxDomains)
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
    content.transactions.foreach { all =>
      val transactions = json.putArray("setTransactions")
      all.toSeq.sortBy(_.appId).foreach(t => transactions.add(body(t)))
    }
    content.domains.foreach { all =>
      val domains = json.putArray("domainMetadata")
      all.toSeq.sortBy(_.domain).foreach(d => domains.add(body(d)))
    }
    json.set[JsonNode]("metadata", body(content.metadata))
    json.set[JsonNode]("protocol", body(content.protocol))
    json
  }

  private def body(action: Action): JsonNode =
    ActionJson.mapper.readTree(ActionJson.write(action)).elements.next()
}
