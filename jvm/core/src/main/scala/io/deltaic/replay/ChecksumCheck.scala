package io.deltaic.replay

import com.fasterxml.jackson.core.JsonProcessingException
import org.slf4j.LoggerFactory

import io.deltaic.log.VersionChecksum
import io.deltaic.protocol.{ActionJson, Metadata}

/** Compares a snapshot with the checksum file of its version. */
private[replay] object ChecksumCheck {

  private val logger = LoggerFactory.getLogger(ChecksumCheck.getClass)

  /** Logs the differences, if there are any. */
  def warn(snapshot: Snapshot, differences: Seq[String]): Unit =
    if (differences.nonEmpty) {
      logger.warn(
        "Table {}: version {} differs from its checksum file: {}",
        snapshot.table,
        snapshot.version,
        differences.mkString("; ")
      )
    }

  /**
   * The differences as messages. Fields that the checksum lacks, and files that have not been read, are not compared.
   */
  def differences(expected: VersionChecksum, snapshot: Snapshot): Seq[String] = {
    val inFiles =
      if (snapshot.isDistributed) Nil else ofFiles(expected, snapshot.filesInMemory.counts)
    inFiles ++ nonFileDifferences(expected, snapshot)
  }

  /** The differences in files only. */
  def ofFiles(expected: VersionChecksum, found: FileCounts): Seq[String] = Seq(
    compare("numFiles", expected.numFiles, found.files),
    compare("tableSizeBytes", expected.sizeBytes, found.sizeBytes),
    compare("numDeletionVectors", expected.numDeletionVectors, found.deletionVectors),
    compare("numDeletedRecords", expected.numDeletedRecords, found.deletedRecords)
  ).flatten

  private def nonFileDifferences(expected: VersionChecksum, snapshot: Snapshot): Seq[String] =
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

  private def compare[A](field: String, expected: Option[A], found: => A): Option[String] =
    expected.filter(_ != found).map(e => s"$field is $found instead of $e")

  private def metadataDifference(expected: VersionChecksum, snapshot: Snapshot): Option[String] =
    expected.metadata.filterNot(isEquivalent(_, snapshot.metadata)).map(_ => "metaData differs")

  /** The other fields do not affect readers. */
  private def isEquivalent(a: Metadata, b: Metadata): Boolean =
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
