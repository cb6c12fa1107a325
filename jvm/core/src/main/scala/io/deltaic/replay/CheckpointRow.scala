package io.deltaic.replay

import io.deltaic.protocol._
import io.deltaic.replay.checkpoint.StructCell

/** Non-file actions as rows of a checkpoint: each is one struct column (Protocol § Checkpoint Schema). */
private[replay] object CheckpointRow {
  import FileCells.{lacks, valueOf}

  private val readers: Seq[(String, StructCell => Action)] = Seq(
    "protocol" -> protocol,
    "metaData" -> metadata,
    "txn" -> txn,
    "domainMetadata" -> domain,
    "checkpointMetadata" -> checkpointMetadata,
    "sidecar" -> sidecar
  )

  val NonFileActions: Set[String] = readers.map(_._1).toSet

  /** Exactly one of these columns is not null in each row of a non-file action. */
  val RequiredColumns: Seq[Seq[String]] = Seq(
    Seq("protocol", "minReaderVersion"),
    Seq("metaData", "id"),
    Seq("txn", "appId"),
    Seq("domainMetadata", "domain"),
    Seq("checkpointMetadata", "version"),
    Seq("sidecar", "path")
  )

  /** Returns a function that reads the non-file action of the current row of these cells. */
  def nonFileReader(record: StructCell)(found: Action => Unit): () => Unit = {
    val cells = readers.flatMap { case (name, read) => record.struct(name).map(_ -> read) }
    () => cells.foreach { case (cell, read) => if (cell.isDefined) found(read(cell)) }
  }

  private def protocol(c: StructCell): Protocol = Protocol(
    int(c, "minReaderVersion").getOrElse(lacks("protocol.minReaderVersion")),
    int(c, "minWriterVersion").getOrElse(lacks("protocol.minWriterVersion")),
    strings(c, "readerFeatures").map(_.toSet),
    strings(c, "writerFeatures").map(_.toSet)
  )

  private def metadata(c: StructCell): Metadata = Metadata(
    string(c, "id").getOrElse(lacks("metaData.id")),
    string(c, "name"),
    string(c, "description"),
    c.struct("format").filter(_.isDefined).fold(Format()) { f =>
      Format(string(f, "provider").getOrElse("parquet"), map(f, "options"))
    },
    string(c, "schemaString").getOrElse(Metadata.EmptySchema),
    strings(c, "partitionColumns").getOrElse(Vector.empty),
    long(c, "createdTime"),
    map(c, "configuration").filter(_._2 != null)
  )

  private def txn(c: StructCell): SetTransaction = SetTransaction(
    string(c, "appId").getOrElse(lacks("txn.appId")),
    long(c, "version").getOrElse(lacks("txn.version")),
    long(c, "lastUpdated")
  )

  private def domain(c: StructCell): DomainMetadata = DomainMetadata(
    string(c, "domain").getOrElse(lacks("domainMetadata.domain")),
    string(c, "configuration").getOrElse(""),
    long(c, "removed").contains(1L)
  )

  private def checkpointMetadata(c: StructCell): CheckpointMetadata = CheckpointMetadata(
    long(c, "version").getOrElse(lacks("checkpointMetadata.version")),
    map(c, "tags")
  )

  private def sidecar(c: StructCell): Sidecar = Sidecar(
    string(c, "path").getOrElse(lacks("sidecar.path")),
    long(c, "sizeInBytes").getOrElse(0L),
    long(c, "modificationTime").getOrElse(0L),
    map(c, "tags")
  )

  private def string(c: StructCell, name: String): Option[String] = valueOf(c.text(name))
  private def long(c: StructCell, name: String): Option[Long] = valueOf(c.long(name))
  private def int(c: StructCell, name: String): Option[Int] = long(c, name).map(Math.toIntExact)
  private def map(c: StructCell, name: String): Map[String, String] = valueOf(c.map(name))

  private def strings(c: StructCell, name: String): Option[Vector[String]] =
    Option(c.list(name)).flatMap(_.strings)
}
