package io.deltaic.protocol

import java.util.Locale

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

/**
 * One table feature, as `table-features.json` describes it.
 *
 * @param minReaderVersion the legacy reader version that implies the feature, if any
 * @param minWriterVersion the legacy writer version that implies the feature, if any
 * @param usedBy the table metadata that uses the feature
 * @param read whether this build can read a table that uses it
 * @param write whether this build can write to a table that uses it
 * @param writableWhenInactive whether a table that supports the feature but does not use it requires nothing of a
 *   writer
 */
private[deltaic] final case class TableFeature(
    name: String,
    isReaderWriter: Boolean,
    minReaderVersion: Option[Int],
    minWriterVersion: Option[Int],
    usedBy: FeatureUse,
    aliases: Set[String],
    read: Boolean,
    write: Boolean,
    writableWhenInactive: Boolean
)

/** Protocol § Table Features: which features a table requires, and whether this build supports them. */
object TableFeatures {

  /** From these versions on, features are listed by name. */
  val ReaderVersionWithFeatures = 3
  val WriterVersionWithFeatures = 7

  private[deltaic] lazy val all: Seq[TableFeature] =
    SharedResource.json("table-features.json").elements.asScala.map(read).toVector

  private lazy val byName: Map[String, TableFeature] =
    all.flatMap(f => (f.aliases + f.name).toSeq.map(folded(_) -> f)).toMap

  /** The feature of this name, which may be an older spelling; case-insensitive. */
  private[deltaic] def find(name: String): Option[TableFeature] = byName.get(folded(name))

  /** The canonical name of a feature; an unknown name is returned in lower case. */
  private def canonical(name: String): String = find(name).fold(folded(name))(_.name)

  private def folded(name: String): String = name.toLowerCase(Locale.ROOT)

  /** The features that a reader must support, listed or implied by the reader version. */
  def readerFeaturesOf(protocol: Protocol): Set[String] =
    if (protocol.minReaderVersion >= ReaderVersionWithFeatures) {
      protocol.readerFeatures.getOrElse(Set.empty)
    } else implied(_.minReaderVersion, protocol.minReaderVersion)

  /** The features that a writer must support, listed or implied by the writer version. */
  def writerFeaturesOf(protocol: Protocol): Set[String] =
    if (protocol.minWriterVersion >= WriterVersionWithFeatures) {
      protocol.writerFeatures.getOrElse(Set.empty)
    } else implied(_.minWriterVersion, protocol.minWriterVersion)

  /**
   * Whether a table supports the feature, under any spelling of its name: the protocol lists it for every side that
   * requires it. Support does not mean use. A writer uses a feature only where it is supported.
   */
  def supports(protocol: Protocol, feature: String): Boolean =
    contains(writerFeaturesOf(protocol), feature) &&
    (!isReaderWriter(feature) || contains(readerFeaturesOf(protocol), feature))

  /**
   * Whether the protocol lists the feature at all. Some writers list a feature on one side only and use it anyway, so
   * this is sufficient for reading (docs/decisions/0036). A writer version below the table features lists nothing:
   * features that readers must support, too, are implied by the reader version.
   */
  def isListed(protocol: Protocol, feature: String): Boolean =
    if (!isReaderWriter(feature)) supports(protocol, feature)
    else
      contains(readerFeaturesOf(protocol), feature) ||
      contains(protocol.writerFeatures.getOrElse(Set.empty), feature)

  private def isReaderWriter(feature: String): Boolean = find(feature).exists(_.isReaderWriter)

  private def contains(features: Set[String], feature: String): Boolean =
    features.map(canonical).contains(canonical(feature))

  /** Whether the feature is supported and its metadata requirement is met (Protocol § Active Features). */
  def isActive(protocol: Protocol, metadata: Metadata, feature: String): Boolean =
    supports(protocol, feature) && inUse(metadata)(canonical(feature))

  /**
   * Whether the feature is supported and its own property enables it. An active feature may be used by columns alone,
   * as type widening is used by widened columns.
   */
  def isEnabled(protocol: Protocol, metadata: Metadata, feature: String): Boolean =
    find(feature).exists(_.usedBy.isSet(metadata.configuration)) && supports(protocol, feature)

  /**
   * The features that the metadata of a table uses. The protocol may not support them (Protocol § Active Features).
   */
  private[deltaic] def inUse(metadata: Metadata): Set[String] = {
    val columns = ColumnTraits.of(metadata.schemaString)
    all.filter(_.usedBy.matches(metadata.configuration, columns)).map(_.name).toSet
  }

  /** Refuses a table that requires a reader version or feature that this build lacks, regardless of its metadata. */
  def requireReadable(table: String, version: Long, protocol: Protocol): Unit =
    requireReadable(table, version, protocol, None)

  /**
   * Refuses a table that requires a reader version or feature that this build lacks, or whose files are not Parquet.
   */
  def requireReadable(
      table: String,
      version: Long,
      protocol: Protocol,
      metadata: Option[Metadata]
  ): Unit = {
    if (protocol.minReaderVersion > ReaderVersionWithFeatures) {
      refuseVersion("READER", table, version, protocol.minReaderVersion, ReaderVersionWithFeatures)
    }
    if (protocol.minReaderVersion == ReaderVersionWithFeatures && protocol.readerFeatures.isEmpty) {
      invalid(table, version, "reader version 3 without readerFeatures")
    }
    refuseFeatures("READER", table, version, unreadable(protocol))
    metadata.map(_.format.provider).filterNot(isKnownFormat).foreach { provider =>
      throw DeltaicException(
        "DELTAIC_UNSUPPORTED_FILE_FORMAT",
        Map("table" -> table, "version" -> version.toString, "provider" -> provider)
      )
    }
  }

  /** Protocol § Format Specification: data files are Parquet. */
  private def isKnownFormat(provider: String): Boolean = provider.equalsIgnoreCase("parquet")

  /** Whether [[requireReadable]] would accept a table. */
  def isReadable(protocol: Protocol, metadata: Option[Metadata]): Boolean =
    protocol.minReaderVersion <= ReaderVersionWithFeatures && unreadable(protocol).isEmpty &&
    metadata.forall(m => isKnownFormat(m.format.provider))

  private def unreadable(protocol: Protocol): Set[String] = {
    // Writer-only features do not affect readers, except a feature that this build knows and cannot read: its use
    // changes the meaning of the data.
    val needed = readerFeaturesOf(protocol) ++
      writerFeaturesOf(protocol).filter(name => find(name).exists(!_.read))
    needed.filterNot(name => find(name).exists(_.read))
  }

  /** Refuses a table to which this build cannot write without violating a feature that it lacks. */
  def requireWritable(
      table: String,
      version: Long,
      protocol: Protocol,
      metadata: Metadata
  ): Unit = {
    requireReadable(table, version, protocol, Some(metadata))
    if (protocol.minWriterVersion > WriterVersionWithFeatures) {
      refuseVersion("WRITER", table, version, protocol.minWriterVersion, WriterVersionWithFeatures)
    }
    if (protocol.minWriterVersion == WriterVersionWithFeatures && protocol.writerFeatures.isEmpty) {
      invalid(table, version, "writer version 7 without writerFeatures")
    }
    val used = inUse(metadata)
    val unwritable = writerFeaturesOf(protocol).filterNot { name =>
      find(name).exists { feature =>
        feature.write || (feature.writableWhenInactive && !used(feature.name))
      }
    }
    refuseFeatures("WRITER", table, version, unwritable)
  }

  private def implied(legacyVersion: TableFeature => Option[Int], version: Int): Set[String] =
    all.filter(f => legacyVersion(f).exists(_ <= version)).map(_.name).toSet

  private def refuseVersion(
      side: String,
      table: String,
      version: Long,
      required: Int,
      supported: Int
  ): Nothing = throw DeltaicException(
    s"DELTAIC_UNSUPPORTED_${side}_VERSION",
    Map(
      "table" -> table,
      "version" -> version.toString,
      "required" -> required.toString,
      "supported" -> supported.toString
    )
  )

  private[deltaic] def refuseFeatures(
      side: String,
      table: String,
      version: Long,
      features: Set[String]
  ): Unit = if (features.nonEmpty) {
    throw DeltaicException(
      s"DELTAIC_UNSUPPORTED_${side}_FEATURE",
      Map(
        "table" -> table,
        "version" -> version.toString,
        "features" -> features.toSeq.sorted.mkString(", ")
      )
    )
  }

  private def invalid(table: String, version: Long, reason: String): Nothing =
    throw DeltaicException(
      "DELTAIC_PROTOCOL_INVALID",
      Map("table" -> table, "version" -> version.toString, "reason" -> reason)
    )

  private def read(json: JsonNode): TableFeature = TableFeature(
    name = json.get("name").textValue,
    isReaderWriter = json.get("kind").textValue == "readerWriter",
    minReaderVersion = legacyVersion(json, "minReaderVersion"),
    minWriterVersion = legacyVersion(json, "minWriterVersion"),
    usedBy = FeatureUse.read(json),
    aliases = json.get("aliases").elements.asScala.map(_.textValue).toSet,
    read = json.get("read").booleanValue,
    write = json.get("write").booleanValue,
    writableWhenInactive = json.path("writableWhenInactive").asBoolean(false)
  )

  private def legacyVersion(json: JsonNode, field: String): Option[Int] =
    Option(json.get(field)).filter(_.isInt).map(_.intValue)
}
