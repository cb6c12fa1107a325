package io.deltaic.replay

import com.fasterxml.jackson.core.JsonProcessingException
import org.slf4j.LoggerFactory

import io.deltaic.log.VersionChecksum
import io.deltaic.protocol.{ActionJson, Metadata}

/** Holds a snapshot against the checksum file of its version. */
private[replay] object ChecksumCheck {

  private val logger = LoggerFactory.getLogger(ChecksumCheck.getClass)

  /** Says what differs, if anything does. */
  def warn(snapshot: Snapshot, differences: Seq[String]): Unit =
    if (differences.nonEmpty) {
      logger.warn(
        "Table {}: version {} is not as its checksum file says: {}",
        snapshot.table,
        snapshot.version,
        differences.mkString("; ")
      )
    }

  /** What differs, in words; nothing for what the checksum does not tell, or for files that nobody has read. */
  def differences(expected: VersionChecksum, snapshot: Snapshot): Seq[String] = {
    val inFiles =
      if (snapshot.isDistributed) Nil else ofFiles(expected, snapshot.filesInMemory.counts)
    inFiles ++ headerDifferences(expected, snapshot)
  }

  /** The same of files alone. */
  def ofFiles(expected: VersionChecksum, found: FileCounts): Seq[String] = Seq(
    compare("numFiles", expected.numFiles, found.files),
    compare("tableSizeBytes", expected.sizeBytes, found.sizeBytes),
    compare("numDeletionVectors", expected.numDeletionVectors, found.deletionVectors),
    compare("numDeletedRecords", expected.numDeletedRecords, found.deletedRecords)
  ).flatten

  private def headerDifferences(expected: VersionChecksum, snapshot: Snapshot): Seq[String] =
    Seq(
      compare("numMetadata", expected.numMetadata, 1L),
      compare("numProtocol", expected.numProtocol, 1L),
      compare("inCommitTimestamp", expected.inCommitTimestampMs, snapshot.timestampMs),
      compare("protocol", expected.protocol, snapshot.protocol),
      metadataDifference(expected, snapshot),
      transactionDifference(expected, snapshot),
      expected.domains.filter(_.filterNot(_.removed).toSet != snapshot.domains.values.toSet).map(
        _ =>
          "domainMetadata differs"
      )
    ).flatten

  private def compare[A](what: String, told: Option[A], found: => A): Option[String] =
    told.filter(_ != found).map(t => s"$what is $found instead of $t")

  private def metadataDifference(expected: VersionChecksum, snapshot: Snapshot): Option[String] =
    expected.metadata.filterNot(alike(_, snapshot.metadata)).map(_ => "metaData differs")

  /** The rest is of no consequence to anyone. */
  private def alike(a: Metadata, b: Metadata): Boolean =
    a.id == b.id && a.partitionColumns == b.partitionColumns &&
    a.configuration == b.configuration && sameSchema(a.schemaString, b.schemaString)

  private def sameSchema(a: String, b: String): Boolean =
    try a == b || ActionJson.mapper.readTree(a) == ActionJson.mapper.readTree(b)
    catch { case _: JsonProcessingException => false }

  private def transactionDifference(
      expected: VersionChecksum,
      snapshot: Snapshot
  ): Option[String] =
    expected.transactions.toSeq.flatten
      .find(t => !snapshot.transactions.get(t.appId).exists(_.version == t.version))
      .map(t => s"txn of ${t.appId} differs")
}
