package io.deltaic.log

import java.io.IOException

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.fs.FileStatus
import org.slf4j.LoggerFactory

import io.deltaic.protocol._

/**
 * The content of a version checksum file, `00000000000000000007.crc`. Newer editions of the protocol describe it;
 * writers omit fields that they do not know.
 *
 * @param transactions None if the file has no such field; expired ones may be missing
 * @param domains None if the file has no such field
 */
private[deltaic] final case class VersionChecksum(
    numFiles: Option[Long],
    sizeBytes: Option[Long],
    numMetadata: Option[Long],
    numProtocol: Option[Long],
    numDeletionVectors: Option[Long],
    numDeletedRecords: Option[Long],
    inCommitTimestampMs: Option[Long],
    protocol: Option[Protocol],
    metadata: Option[Metadata],
    transactions: Option[Seq[SetTransaction]],
    domains: Option[Seq[DomainMetadata]]
) {

  /** Only the fields about files. */
  def ofFiles: VersionChecksum = VersionChecksum(
    numFiles,
    sizeBytes,
    numMetadata = None,
    numProtocol = None,
    numDeletionVectors,
    numDeletedRecords,
    inCommitTimestampMs = None,
    protocol = None,
    metadata = None,
    transactions = None,
    domains = None
  )
}

private[deltaic] object VersionChecksum {

  private val logger = LoggerFactory.getLogger(classOf[VersionChecksum])

  /** None if the file cannot be read; the table can still be read. */
  def read(store: LogStore, file: FileStatus): Option[VersionChecksum] =
    try Some(parse(ActionJson.mapper.readTree(store.read(file.getPath))))
    catch {
      case e @ (_: IOException | _: DeltaicThrowable) =>
        logger.warn("The checksum file {} cannot be read: {}", file.getPath, Printable.messageOf(e))
        None
    }

  private def parse(json: JsonNode): VersionChecksum = {
    if (!json.isObject) throw new IOException("it does not hold a JSON object")
    def long(field: String): Option[Long] =
      Option(json.get(field)).filter(_.canConvertToLong).map(_.longValue)
    // The fields are bodies of actions, so they are parsed as actions.
    def action(kind: String, body: JsonNode): Option[Action] =
      Option(body).filter(_.isObject).flatMap { b =>
        ActionJson.parse(ActionJson.mapper.createObjectNode().set[JsonNode](kind, b).toString)
      }
    def actions(kind: String, field: String): Option[Seq[Action]] =
      Option(json.get(field)).filter(_.isArray).map(_.elements.asScala.flatMap(action(
        kind,
        _
      )).toSeq)
    VersionChecksum(
      numFiles = long("numFiles"),
      sizeBytes = long("tableSizeBytes"),
      numMetadata = long("numMetadata"),
      numProtocol = long("numProtocol"),
      numDeletionVectors = long("numDeletionVectorsOpt"),
      numDeletedRecords = long("numDeletedRecordsOpt"),
      inCommitTimestampMs = long("inCommitTimestampOpt"),
      protocol = action("protocol", json.get("protocol")).collect { case p: Protocol => p },
      metadata = action("metaData", json.get("metadata")).collect { case m: Metadata => m },
      transactions = actions("txn", "setTransactions").map(_.collect {
        case t: SetTransaction => t
      }),
      domains = actions("domainMetadata", "domainMetadata").map(_.collect {
        case d: DomainMetadata => d
      })
    )
  }
}
