package io.deltaic.replay

import java.io.IOException

import io.deltaic.protocol._

/** Actions as rows of a checkpoint: each is one struct column (Protocol § Checkpoint Schema). */
private[replay] object CheckpointRow {

  def protocol(c: StructCell): Protocol = Protocol(
    required(int(c, "minReaderVersion"), "protocol.minReaderVersion"),
    required(int(c, "minWriterVersion"), "protocol.minWriterVersion"),
    strings(c, "readerFeatures").map(_.toSet),
    strings(c, "writerFeatures").map(_.toSet)
  )

  def metadata(c: StructCell): Metadata = Metadata(
    required(text(c, "id"), "metaData.id"),
    text(c, "name"),
    text(c, "description"),
    c.struct("format").filter(_.isDefined).fold(Format()) { f =>
      Format(text(f, "provider").getOrElse("parquet"), map(f, "options"))
    },
    text(c, "schemaString").getOrElse(Metadata.EmptySchema),
    strings(c, "partitionColumns").getOrElse(Vector.empty),
    long(c, "createdTime"),
    map(c, "configuration")
  )

  def txn(c: StructCell): SetTransaction = SetTransaction(
    required(text(c, "appId"), "txn.appId"),
    required(long(c, "version"), "txn.version"),
    long(c, "lastUpdated")
  )

  def domain(c: StructCell): DomainMetadata = DomainMetadata(
    required(text(c, "domain"), "domainMetadata.domain"),
    text(c, "configuration").getOrElse(""),
    boolean(c, "removed").getOrElse(false)
  )

  def add(c: StructCell): AddFile = AddFile(
    path = required(text(c, "path"), "add.path"),
    partitionValues = map(c, "partitionValues"),
    sizeBytes = required(long(c, "size"), "add.size"),
    modificationTimeMs = long(c, "modificationTime").getOrElse(0L),
    dataChange = false,
    stats = text(c, "stats")
      .orElse(c.struct("stats_parsed").filter(_.isDefined).map(ParsedStats.toJson)),
    tags = map(c, "tags"),
    deletionVector = deletionVector(c),
    baseRowId = long(c, "baseRowId"),
    defaultRowCommitVersion = long(c, "defaultRowCommitVersion"),
    clusteringProvider = text(c, "clusteringProvider")
  )

  def remove(c: StructCell): RemoveFile = RemoveFile(
    path = required(text(c, "path"), "remove.path"),
    deletionTimestampMs = long(c, "deletionTimestamp"),
    dataChange = boolean(c, "dataChange").getOrElse(true),
    extendedFileMetadata = boolean(c, "extendedFileMetadata"),
    partitionValues = map(c, "partitionValues"),
    sizeBytes = long(c, "size"),
    deletionVector = deletionVector(c),
    baseRowId = long(c, "baseRowId"),
    defaultRowCommitVersion = long(c, "defaultRowCommitVersion")
  )

  private def deletionVector(c: StructCell): Option[DeletionVectorDescriptor] =
    c.struct("deletionVector").filter(_.isDefined).map { d =>
      DeletionVectorDescriptor(
        required(text(d, "storageType"), "deletionVector.storageType"),
        required(text(d, "pathOrInlineDv"), "deletionVector.pathOrInlineDv"),
        int(d, "offset"),
        required(int(d, "sizeInBytes"), "deletionVector.sizeInBytes"),
        required(long(d, "cardinality"), "deletionVector.cardinality")
      )
    }

  private def text(c: StructCell, name: String): Option[String] = c.field(name) match {
    case Some(t: TextCell) if t.isDefined => Some(t.text)
    case _ => None
  }

  private def long(c: StructCell, name: String): Option[Long] = c.field(name) match {
    case Some(n: LongCell) if n.isDefined => Some(n.long)
    case _ => None
  }

  private def int(c: StructCell, name: String): Option[Int] = long(c, name).map(Math.toIntExact)

  private def boolean(c: StructCell, name: String): Option[Boolean] = long(c, name).map(_ == 1)

  private def map(c: StructCell, name: String): Map[String, String] = c.field(name) match {
    case Some(m: MapCell) => m.map
    case _ => Map.empty
  }

  private def strings(c: StructCell, name: String): Option[Vector[String]] = c.field(name) match {
    case Some(l: ListCell) => l.strings
    case _ => None
  }

  private def required[A](value: Option[A], field: String): A =
    value.getOrElse(throw new IOException(s"a row lacks the required field $field"))
}
