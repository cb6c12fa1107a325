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
 */
private[deltaic] final case class TableFeature(
    name: String,
    isReaderWriter: Boolean,
    minReaderVersion: Option[Int],
    minWriterVersion: Option[Int],
    usedBy: FeatureUse,
    aliases: Set[String],
    read: Boolean
)

/**
 * Protocol § Table Features: which features a table requires, and whether this build can read them. Python decides
 * whether it can write to a table.
 */
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

  /** The version of Iceberg compatibility that is active: the newest, should there be several. */
  def activeIcebergVersion(protocol: Protocol, metadata: Metadata): Option[Int] =
    Seq(3, 2, 1).find(version => isActive(protocol, metadata, s"icebergCompatV$version"))

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
    def refuse(condition: String, details: (String, String)*): Nothing = throw DeltaicException(
      condition,
      Map("table" -> table, "version" -> version.toString) ++ details
    )
    if (protocol.minReaderVersion > ReaderVersionWithFeatures) {
      refuse(
        "DELTAIC_UNSUPPORTED_READER_VERSION",
        "required" -> protocol.minReaderVersion.toString,
        "supported" -> ReaderVersionWithFeatures.toString
      )
    }
    if (protocol.minReaderVersion == ReaderVersionWithFeatures && protocol.readerFeatures.isEmpty) {
      refuse("DELTAIC_PROTOCOL_INVALID", "reason" -> "reader version 3 without readerFeatures")
    }
    val refused = unreadable(protocol).toSeq.sorted
    if (refused.nonEmpty)
      refuse("DELTAIC_UNSUPPORTED_READER_FEATURE", "features" -> refused.mkString(", "))
    metadata.map(_.format.provider).filterNot(isKnownFormat).foreach { provider =>
      refuse("DELTAIC_UNSUPPORTED_FILE_FORMAT", "provider" -> provider)
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

  private def implied(legacyVersion: TableFeature => Option[Int], version: Int): Set[String] =
    all.filter(f => legacyVersion(f).exists(_ <= version)).map(_.name).toSet

  private def read(json: JsonNode): TableFeature = TableFeature(
    name = json.get("name").textValue,
    isReaderWriter = json.get("kind").textValue == "readerWriter",
    minReaderVersion = legacyVersion(json, "minReaderVersion"),
    minWriterVersion = legacyVersion(json, "minWriterVersion"),
    usedBy = FeatureUse.read(json),
    aliases = json.get("aliases").elements.asScala.map(_.textValue).toSet,
    read = json.get("read").booleanValue
  )

  private def legacyVersion(json: JsonNode, field: String): Option[Int] =
    Option(json.get(field)).filter(_.isInt).map(_.intValue)
}
