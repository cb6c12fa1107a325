package io.deltaic.maintenance

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.core.json.JsonReadFeature
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode}
import org.apache.hadoop.conf.Configuration
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.api.WriteSupport.WriteContext
import org.apache.parquet.io.api.{Binary, RecordConsumer}
import org.apache.parquet.schema.{GroupType, MessageType}

import io.deltaic.protocol._

/**
 * Writes each action as a row in which only the struct of its kind is not null. Fields that the schema lacks are left
 * out.
 */
private[maintenance] final class ActionWriteSupport(schema: MessageType, layout: CheckpointLayout)
    extends WriteSupport[Action] {
  import ActionWriteSupport._

  private var out: RecordConsumer = _
  private var row: Fields = _

  override def init(conf: Configuration): WriteContext =
    new WriteContext(schema, Map.empty[String, String].asJava)

  override def prepareForWrite(consumer: RecordConsumer): Unit = {
    out = consumer
    row = new Fields(schema, consumer)
  }

  override def write(action: Action): Unit = {
    out.startMessage()
    action match {
      case a: AddFile => row.group("add")(add(_, a))
      case r: RemoveFile => row.group("remove")(remove(_, r))
      case m: Metadata => row.group("metaData")(metadata(_, m))
      case p: Protocol => row.group("protocol")(protocol(_, p))
      case t: SetTransaction => row.group("txn") { f =>
          f.string("appId", t.appId)
          f.long("version", t.version)
          t.lastUpdatedMs.foreach(f.long("lastUpdated", _))
        }
      case d: DomainMetadata => row.group("domainMetadata") { f =>
          f.string("domain", d.domain)
          f.string("configuration", d.configuration)
          f.boolean("removed", d.removed)
        }
      case c: CheckpointMetadata => row.group("checkpointMetadata") { f =>
          f.long("version", c.version)
          f.map("tags", c.tags)
        }
      case s: Sidecar => row.group("sidecar") { f =>
          f.string("path", s.path)
          f.long("sizeInBytes", s.sizeBytes)
          f.long("modificationTime", s.modificationTimeMs)
          f.map("tags", s.tags)
        }
      case _: AddCdcFile | _: CommitInfo =>
        throw new IllegalArgumentException("no checkpoint holds such an action")
    }
    out.endMessage()
  }

  private def add(f: Fields, a: AddFile): Unit = {
    f.string("path", a.path)
    f.map("partitionValues", a.partitionValues)
    f.long("size", a.sizeBytes)
    f.long("modificationTime", a.modificationTimeMs)
    f.boolean("dataChange", false)
    if (a.tags.nonEmpty) f.map("tags", a.tags)
    a.deletionVector.foreach(deletionVector(f, _))
    a.baseRowId.foreach(f.long("baseRowId", _))
    a.defaultRowCommitVersion.foreach(f.long("defaultRowCommitVersion", _))
    a.clusteringProvider.foreach(f.string("clusteringProvider", _))
    if (layout.hasJsonStats) a.stats.foreach(f.string("stats", _))
    if (layout.partition.nonEmpty) partition(f, a)
    for (columns <- layout.stats; json <- a.stats; stats <- parseStats(json))
      f.group("stats_parsed")(parsedStats(_, columns, stats))
  }

  /** A value that cannot be parsed would become null, so in that case no partition value of the file is written. */
  private def partition(f: Fields, a: AddFile): Unit = {
    val values = layout.partition.map { column =>
      Option(a.partitionValues.getOrElse(column.name, null)).fold(NullValue)(column.parse)
    }
    if (values.forall(_.isDefined)) f.group("partitionValues_parsed") { inner =>
      layout.partition.zip(values.flatten).foreach {
        case (_, null) => ()
        case (column, value) => inner.leaf(column.name)(ParsedType.write(out, column.kind, value))
      }
    }
  }

  private def parsedStats(f: Fields, columns: StatsLayout, stats: JsonNode): Unit = {
    f.parsed(ParsedLeaf("numRecords", ParsedType.Int64), stats, isUpper = false)
    f.parsed(ParsedGroup("minValues", columns.bounds), stats, isUpper = false)
    f.parsed(ParsedGroup("maxValues", columns.bounds), stats, isUpper = true)
    f.parsed(ParsedGroup("nullCount", columns.nullCounts), stats, isUpper = false)
    if (columns.hasTightBounds)
      f.parsed(ParsedLeaf("tightBounds", ParsedType.Bool), stats, isUpper = false)
  }

  private def remove(f: Fields, r: RemoveFile): Unit = {
    f.string("path", r.path)
    r.deletionTimestampMs.foreach(f.long("deletionTimestamp", _))
    f.boolean("dataChange", false)
    r.extendedFileMetadata.foreach(f.boolean("extendedFileMetadata", _))
    if (r.partitionValues.nonEmpty || r.extendedFileMetadata.contains(true))
      f.map("partitionValues", r.partitionValues)
    r.sizeBytes.foreach(f.long("size", _))
    r.deletionVector.foreach(deletionVector(f, _))
    r.baseRowId.foreach(f.long("baseRowId", _))
    r.defaultRowCommitVersion.foreach(f.long("defaultRowCommitVersion", _))
  }

  private def deletionVector(f: Fields, d: DeletionVectorDescriptor): Unit =
    f.group("deletionVector") { v =>
      v.string("storageType", d.storageType)
      v.string("pathOrInlineDv", d.pathOrInlineDv)
      d.offset.foreach(v.int("offset", _))
      v.int("sizeInBytes", d.sizeBytes)
      v.long("cardinality", d.cardinality)
    }

  private def metadata(f: Fields, m: Metadata): Unit = {
    f.string("id", m.id)
    m.name.foreach(f.string("name", _))
    m.description.foreach(f.string("description", _))
    f.group("format") { format =>
      format.string("provider", m.format.provider)
      format.map("options", m.format.options)
    }
    f.string("schemaString", m.schemaString)
    f.strings("partitionColumns", m.partitionColumns)
    f.map("configuration", m.configuration)
    m.createdTimeMs.foreach(f.long("createdTime", _))
  }

  private def protocol(f: Fields, p: Protocol): Unit = {
    f.int("minReaderVersion", p.minReaderVersion)
    f.int("minWriterVersion", p.minWriterVersion)
    p.readerFeatures.foreach(names => f.strings("readerFeatures", names.toSeq.sorted))
    p.writerFeatures.foreach(names => f.strings("writerFeatures", names.toSeq.sorted))
  }
}

private object ActionWriteSupport {
  private val NullValue: Option[Any] = Some(null)

  /** Preserves all digits of bounds. */
  private val mapper = JsonMapper
    .builder()
    .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
    .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
    .build()

  /** Statistics that cannot be parsed are treated as missing. */
  def parseStats(json: String): Option[JsonNode] =
    try Some(mapper.readTree(json)).filter(_.isObject)
    catch { case _: JsonProcessingException => None }
}

/** The fields of a struct; nested fields are looked up once for all rows. */
private final class Fields(schema: GroupType, out: RecordConsumer) {

  private val groups: Map[String, Fields] = schema.getFields.asScala.collect {
    case group if !group.isPrimitive => group.getName -> new Fields(group.asGroupType, out)
  }.toMap

  private val indexes: Map[String, Int] =
    schema.getFields.asScala.map(f => f.getName -> schema.getFieldIndex(f.getName)).toMap

  def leaf(name: String)(write: => Unit): Unit = {
    out.startField(name, indexes(name))
    write
    out.endField(name, indexes(name))
  }

  def string(name: String, value: String): Unit =
    leaf(name)(out.addBinary(Binary.fromString(value)))

  def long(name: String, value: Long): Unit = leaf(name)(out.addLong(value))
  def int(name: String, value: Int): Unit = leaf(name)(out.addInteger(value))
  def boolean(name: String, value: Boolean): Unit = leaf(name)(out.addBoolean(value))

  def group(name: String)(write: Fields => Unit): Unit = leaf(name) {
    out.startGroup()
    write(groups(name))
    out.endGroup()
  }

  def map(name: String, values: Map[String, String]): Unit = group(name) { f =>
    if (values.nonEmpty) {
      f.repeated("key_value", values) { case (entry, (key, value)) =>
        entry.string("key", key)
        if (value != null) entry.string("value", value)
      }
    }
  }

  def strings(name: String, values: Seq[String]): Unit = group(name) { f =>
    if (values.nonEmpty) {
      f.repeated("list", values)((entry, value) => entry.string("element", value))
    }
  }

  /** Writes the values of a column and its nested columns from an object of JSON statistics. */
  def parsed(column: ParsedColumn, parent: JsonNode, isUpper: Boolean): Unit = {
    val node = parent.get(column.name)
    column match {
      case ParsedGroup(name, children) =>
        if (children.nonEmpty && node != null && node.isObject)
          group(name)(inner => children.foreach(inner.parsed(_, node, isUpper)))
      case ParsedLeaf(name, kind) =>
        val value = if (node == null) null else ParsedType.fromJson(kind, node, isUpper)
        if (value != null) leaf(name)(ParsedType.write(out, kind, value))
    }
  }

  private def repeated[A](name: String, values: Iterable[A])(write: (Fields, A) => Unit): Unit =
    leaf(name) {
      val entry = groups(name)
      values.foreach { value =>
        out.startGroup()
        write(entry, value)
        out.endGroup()
      }
    }
}
