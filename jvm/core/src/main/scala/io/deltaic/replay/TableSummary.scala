package io.deltaic.replay

import io.deltaic.log.{LogSegment, VersionChecksum}
import io.deltaic.protocol._

/** A version without its files and transactions. */
final case class TableSummary(
    version: Long,
    timestampMs: Long,
    protocol: Protocol,
    metadata: Metadata,
    domains: Map[String, DomainMetadata],
    size: TableSize
)

object TableSummary {

  /** None if the checksum lacks any of the fields. */
  private[replay] def of(segment: LogSegment, checksum: VersionChecksum): Option[TableSummary] =
    for {
      protocol <- checksum.protocol
      metadata <- checksum.metadata
      // The protocol in the checksum may be wrong, so it never refuses a table: the version itself is read.
      if TableFeatures.isReadable(protocol, Some(metadata))
      files <- checksum.numFiles
      bytes <- checksum.sizeBytes
      domains <-
        if (TableFeatures.supports(protocol, "domainMetadata")) checksum.domains else Some(Nil)
      timestampMs <-
        if (TableFeatures.isActive(protocol, metadata, "inCommitTimestamp"))
          checksum.inCommitTimestampMs
        else segment.lastCommit.map(_.getModificationTime)
    } yield TableSummary(
      segment.version,
      timestampMs,
      protocol,
      metadata,
      domains.filterNot(_.removed).map(d => d.domain -> d).toMap,
      TableSize(files, bytes)
    )
}
