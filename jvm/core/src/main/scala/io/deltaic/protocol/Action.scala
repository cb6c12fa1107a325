package io.deltaic.protocol

import com.fasterxml.jackson.databind.node.ObjectNode

/**
 * One action of the transaction log, with the protocol's names (Protocol § Actions).
 *
 * Paths are stored exactly as spelled in the log: URI-encoded, relative to the table or absolute. [[LogPath]] turns
 * them into file system paths. A `null` value in `partitionValues` is a null partition value.
 */
sealed trait Action

/** Protocol § Protocol Evolution. The feature sets are present from reader version 3 and writer version 7 on. */
final case class Protocol(
    minReaderVersion: Int,
    minWriterVersion: Int,
    readerFeatures: Option[Set[String]] = None,
    writerFeatures: Option[Set[String]] = None
) extends Action

/** Protocol § Format Specification. */
final case class Format(provider: String = "parquet", options: Map[String, String] = Map.empty)

/** Protocol § Change Metadata. */
final case class Metadata(
    id: String,
    name: Option[String] = None,
    description: Option[String] = None,
    format: Format = Format(),
    schemaString: String,
    partitionColumns: Seq[String] = Nil,
    createdTimeMs: Option[Long] = None,
    configuration: Map[String, String] = Map.empty
) extends Action

object Metadata {

  /** The schema of a table without columns. */
  val EmptySchema: String = """{"type":"struct","fields":[]}"""
}

/** An action on one logical file, which the pair of its path and its deletion vector's id identifies. */
sealed trait FileAction extends Action {
  def path: String
  def deletionVector: Option[DeletionVectorDescriptor]
  final def dvId: Option[String] = deletionVector.map(_.uniqueId)
}

/** Protocol § Add File and Remove File. */
final case class AddFile(
    path: String,
    partitionValues: Map[String, String],
    sizeBytes: Long,
    modificationTimeMs: Long,
    dataChange: Boolean,
    stats: Option[String] = None,
    tags: Map[String, String] = Map.empty,
    deletionVector: Option[DeletionVectorDescriptor] = None,
    baseRowId: Option[Long] = None,
    defaultRowCommitVersion: Option[Long] = None,
    clusteringProvider: Option[String] = None
) extends FileAction {

  /** The tombstone that removes this logical file, with the metadata that change data feed readers and VACUUM need. */
  def remove(deletionTimestampMs: Long, dataChange: Boolean = true): RemoveFile = RemoveFile(
    path = path,
    deletionTimestampMs = Some(deletionTimestampMs),
    dataChange = dataChange,
    extendedFileMetadata = Some(true),
    partitionValues = partitionValues,
    sizeBytes = Some(sizeBytes),
    stats = stats,
    tags = tags,
    deletionVector = deletionVector,
    baseRowId = baseRowId,
    defaultRowCommitVersion = defaultRowCommitVersion
  )
}

/** Protocol § Add File and Remove File. */
final case class RemoveFile(
    path: String,
    deletionTimestampMs: Option[Long],
    dataChange: Boolean,
    extendedFileMetadata: Option[Boolean] = None,
    partitionValues: Map[String, String] = Map.empty,
    sizeBytes: Option[Long] = None,
    stats: Option[String] = None,
    tags: Map[String, String] = Map.empty,
    deletionVector: Option[DeletionVectorDescriptor] = None,
    baseRowId: Option[Long] = None,
    defaultRowCommitVersion: Option[Long] = None
) extends FileAction {

  /**
   * The file as the `remove` describes it, which has no modification time and no clustering provider. The size must be
   * there.
   */
  def restored: AddFile = AddFile(
    path = path,
    partitionValues = partitionValues,
    sizeBytes = sizeBytes.get,
    modificationTimeMs = 0L,
    dataChange = dataChange,
    stats = stats,
    tags = tags,
    deletionVector = deletionVector,
    baseRowId = baseRowId,
    defaultRowCommitVersion = defaultRowCommitVersion
  )
}

/** Protocol § Add CDC File. */
final case class AddCdcFile(
    path: String,
    partitionValues: Map[String, String],
    sizeBytes: Long,
    tags: Map[String, String] = Map.empty
) extends Action

/** Protocol § Transaction Identifiers. */
final case class SetTransaction(appId: String, version: Long, lastUpdatedMs: Option[Long] = None)
    extends Action

/** Protocol § Domain Metadata. */
final case class DomainMetadata(domain: String, configuration: String, removed: Boolean)
    extends Action

/** Protocol § Commit Provenance Information: free-form, so all of it is retained. */
final case class CommitInfo(json: ObjectNode) extends Action {
  def timestampMs: Option[Long] = long("timestamp")

  /** Set in every commit of a table with in-commit timestamps; commitInfo must then be the first action. */
  def inCommitTimestampMs: Option[Long] = long("inCommitTimestamp")
  def operation: Option[String] = string("operation")
  def readVersion: Option[Long] = long("readVersion")
  def isolationLevel: Option[String] = string("isolationLevel")
  def isBlindAppend: Option[Boolean] =
    Option(json.get("isBlindAppend")).filter(_.isBoolean).map(_.booleanValue)
  def engineInfo: Option[String] = string("engineInfo")
  def txnId: Option[String] = string("txnId")

  private def long(field: String): Option[Long] =
    Option(json.get(field)).filter(_.canConvertToLong).map(_.longValue)

  private def string(field: String): Option[String] =
    Option(json.get(field)).filter(_.isTextual).map(_.textValue)
}

/** Protocol § Checkpoint Metadata, V2 checkpoints only. */
final case class CheckpointMetadata(version: Long, tags: Map[String, String] = Map.empty)
    extends Action

/** Protocol § Sidecar File Information, V2 checkpoints only. */
final case class Sidecar(
    path: String,
    sizeBytes: Long,
    modificationTimeMs: Long,
    tags: Map[String, String] = Map.empty
) extends Action
