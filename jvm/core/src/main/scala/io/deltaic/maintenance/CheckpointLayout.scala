package io.deltaic.maintenance

import org.apache.parquet.schema.LogicalTypeAnnotation.{listType, mapType, stringType}
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName._
import org.apache.parquet.schema.{GroupType, MessageType, Type, Types}

/**
 * The columns of a table's checkpoints that depend on the table.
 *
 * @param hasJsonStats whether statistics are written as JSON
 * @param stats the columns of `stats_parsed`, if it is written
 * @param partition the columns of `partitionValues_parsed`; empty for a table without partitions
 */
final case class CheckpointLayout(
    hasJsonStats: Boolean,
    stats: Option[StatsLayout],
    partition: Seq[PartitionLayout]
)

/**
 * @param bounds the columns that have a minimum and a maximum
 * @param nullCounts the columns whose nulls are counted
 * @param hasTightBounds whether `tightBounds` is written, as tables with deletion vectors require
 */
final case class StatsLayout(
    bounds: Seq[ParsedColumn],
    nullCounts: Seq[ParsedColumn],
    hasTightBounds: Boolean
)

/** @param parse parses a value of the log; the result may be null, and is None if the value is not of this type */
final case class PartitionLayout(name: String, kind: ParsedType, parse: String => Option[Any])

/** The columns of checkpoint files (Protocol § Checkpoint Schema), in Spark's Parquet layout. */
private[maintenance] object CheckpointSchema {

  /** For a file with every kind of action. */
  def full(layout: CheckpointLayout): MessageType = message(columns(layout))

  /**
   * For the top-level file of a V2 checkpoint with sidecars (Protocol § V2 Spec). It has no file actions, but
   * delta-spark requires their columns.
   */
  def topLevel(layout: CheckpointLayout): MessageType =
    message(columns(layout) ++ Seq(checkpointMetadata, sidecar))

  /** For a sidecar (Protocol § Sidecar Files). */
  def fileActions(layout: CheckpointLayout): MessageType = message(Seq(add(layout), remove))

  private def columns(layout: CheckpointLayout): Seq[GroupType] =
    Seq(txn, add(layout), remove, metadata, protocol, domainMetadata)

  private def message(columns: Seq[GroupType]): MessageType =
    Types.buildMessage().addFields(columns: _*).named("spark_schema")

  private def add(layout: CheckpointLayout): GroupType = {
    val stats = if (layout.hasJsonStats) Seq(string("stats")) else Nil
    val partition =
      if (layout.partition.isEmpty) Nil
      else {
        val columns = layout.partition.map(p => ParsedLeaf(p.name, p.kind))
        Seq(ParsedType.schema(ParsedGroup("partitionValues_parsed", columns)))
      }
    val fields = Seq(
      string("path"),
      map("partitionValues"),
      long("size"),
      long("modificationTime"),
      boolean("dataChange"),
      map("tags"),
      deletionVector,
      long("baseRowId"),
      long("defaultRowCommitVersion"),
      string("clusteringProvider")
    )
    group("add", fields ++ stats ++ partition ++ layout.stats.map(parsedStats): _*)
  }

  private def parsedStats(layout: StatsLayout): Type = {
    def some(name: String, columns: Seq[ParsedColumn]): Option[ParsedColumn] =
      Option.when(columns.nonEmpty)(ParsedGroup(name, columns))
    val columns = Seq(ParsedLeaf("numRecords", ParsedType.Int64)) ++
      some("minValues", layout.bounds) ++ some("maxValues", layout.bounds) ++
      some("nullCount", layout.nullCounts) ++
      Option.when(layout.hasTightBounds)(ParsedLeaf("tightBounds", ParsedType.Bool))
    ParsedType.schema(ParsedGroup("stats_parsed", columns))
  }

  private def remove: GroupType = group(
    "remove",
    string("path"),
    long("deletionTimestamp"),
    boolean("dataChange"),
    boolean("extendedFileMetadata"),
    map("partitionValues"),
    long("size"),
    deletionVector,
    long("baseRowId"),
    long("defaultRowCommitVersion")
  )

  private def deletionVector: GroupType = group(
    "deletionVector",
    string("storageType"),
    string("pathOrInlineDv"),
    int("offset"),
    int("sizeInBytes"),
    long("cardinality")
  )

  private def metadata: GroupType = group(
    "metaData",
    string("id"),
    string("name"),
    string("description"),
    group("format", string("provider"), map("options")),
    string("schemaString"),
    strings("partitionColumns"),
    map("configuration"),
    long("createdTime")
  )

  private def protocol: GroupType = group(
    "protocol",
    int("minReaderVersion"),
    int("minWriterVersion"),
    strings("readerFeatures"),
    strings("writerFeatures")
  )

  private def txn: GroupType = group("txn", string("appId"), long("version"), long("lastUpdated"))

  private def domainMetadata: GroupType =
    group("domainMetadata", string("domain"), string("configuration"), boolean("removed"))

  private def checkpointMetadata: GroupType =
    group("checkpointMetadata", long("version"), map("tags"))

  private def sidecar: GroupType =
    group("sidecar", string("path"), long("sizeInBytes"), long("modificationTime"), map("tags"))

  private def group(name: String, fields: Type*): GroupType =
    Types.optionalGroup().addFields(fields: _*).named(name)

  private def primitive(name: String, kind: PrimitiveTypeName): Type =
    Types.optional(kind).named(name)

  private def long(name: String): Type = primitive(name, INT64)
  private def int(name: String): Type = primitive(name, INT32)
  private def boolean(name: String): Type = primitive(name, BOOLEAN)
  private def string(name: String): Type = Types.optional(BINARY).as(stringType()).named(name)

  private def strings(name: String): Type = {
    val entry = Types.repeatedGroup().addField(string("element")).named("list")
    Types.optionalGroup().as(listType()).addField(entry).named(name)
  }

  private def map(name: String): Type = {
    val key = Types.required(BINARY).as(stringType()).named("key")
    val entry = Types.repeatedGroup().addFields(key, string("value")).named("key_value")
    Types.optionalGroup().as(mapType()).addField(entry).named(name)
  }
}
