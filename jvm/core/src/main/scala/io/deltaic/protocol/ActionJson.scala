package io.deltaic.protocol

import java.io.StringWriter

import com.fasterxml.jackson.core.{
  JsonFactory,
  JsonFactoryBuilder,
  JsonGenerator,
  JsonProcessingException,
  StreamReadConstraints
}
import com.fasterxml.jackson.databind.ObjectMapper

/** Actions as lines of a commit file (Protocol § Actions): one JSON object with one field, named after the action. */
object ActionJson {

  /** Field names are not interned: tags and partition columns would permanently fill the JVM's string table. */
  private[deltaic] val factory: JsonFactory = {
    val builder = new JsonFactoryBuilder()
    builder.disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
    builder.streamReadConstraints(
      StreamReadConstraints.builder().maxStringLength(Int.MaxValue).build()
    )
    builder.build()
  }

  private[deltaic] val mapper: ObjectMapper = new ObjectMapper(factory)

  /**
   * The action in one line, or None for an unknown action, which readers must ignore (Protocol § Protocol Evolution).
   */
  def parse(line: String): Option[Action] = {
    val parser = factory.createParser(line)
    try Option(new ActionParser(parser, ActionsWanted.All).next())
    catch {
      case e: JsonProcessingException =>
        throw DeltaicException(
          "DELTAIC_ACTION_MALFORMED",
          Map("reason" -> e.getOriginalMessage, "action" -> line.take(500)),
          e
        )
    } finally parser.close()
  }

  /** The log line for an action, without a newline. Absent optional fields are left out. */
  def write(action: Action): String = {
    val text = new StringWriter(256)
    val json = factory.createGenerator(text)
    json.writeStartObject()
    action match {
      case a: AddFile => named(json, "add")(add(json, a))
      case r: RemoveFile => named(json, "remove")(remove(json, r))
      case c: AddCdcFile => named(json, "cdc")(cdc(json, c))
      case m: Metadata => named(json, "metaData")(metadata(json, m))
      case p: Protocol => named(json, "protocol")(protocol(json, p))
      case t: SetTransaction =>
        named(json, "txn") {
          json.writeStringField("appId", t.appId)
          json.writeNumberField("version", t.version)
          t.lastUpdatedMs.foreach(json.writeNumberField("lastUpdated", _))
        }
      case d: DomainMetadata =>
        named(json, "domainMetadata") {
          json.writeStringField("domain", d.domain)
          json.writeStringField("configuration", d.configuration)
          json.writeBooleanField("removed", d.removed)
        }
      case c: CommitInfo =>
        json.writeFieldName("commitInfo")
        mapper.writeTree(json, c.json)
      case c: CheckpointMetadata =>
        named(json, "checkpointMetadata") {
          json.writeNumberField("version", c.version)
          map(json, "tags", c.tags, evenIfEmpty = false)
        }
      case s: Sidecar =>
        named(json, "sidecar") {
          json.writeStringField("path", s.path)
          json.writeNumberField("sizeInBytes", s.sizeBytes)
          json.writeNumberField("modificationTime", s.modificationTimeMs)
          map(json, "tags", s.tags, evenIfEmpty = false)
        }
    }
    json.writeEndObject()
    json.close()
    text.toString
  }

  private def named(json: JsonGenerator, field: String)(body: => Unit): Unit = {
    json.writeObjectFieldStart(field)
    body
    json.writeEndObject()
  }

  private def add(json: JsonGenerator, a: AddFile): Unit = {
    json.writeStringField("path", a.path)
    map(json, "partitionValues", a.partitionValues)
    json.writeNumberField("size", a.sizeBytes)
    json.writeNumberField("modificationTime", a.modificationTimeMs)
    json.writeBooleanField("dataChange", a.dataChange)
    a.stats.foreach(json.writeStringField("stats", _))
    map(json, "tags", a.tags, evenIfEmpty = false)
    a.deletionVector.foreach(deletionVector(json, _))
    a.baseRowId.foreach(json.writeNumberField("baseRowId", _))
    a.defaultRowCommitVersion.foreach(json.writeNumberField("defaultRowCommitVersion", _))
    a.clusteringProvider.foreach(json.writeStringField("clusteringProvider", _))
  }

  private def remove(json: JsonGenerator, r: RemoveFile): Unit = {
    val extended = r.extendedFileMetadata.contains(true)
    json.writeStringField("path", r.path)
    r.deletionTimestampMs.foreach(json.writeNumberField("deletionTimestamp", _))
    json.writeBooleanField("dataChange", r.dataChange)
    r.extendedFileMetadata.foreach(json.writeBooleanField("extendedFileMetadata", _))
    map(json, "partitionValues", r.partitionValues, evenIfEmpty = extended)
    r.sizeBytes.foreach(json.writeNumberField("size", _))
    r.stats.foreach(json.writeStringField("stats", _))
    map(json, "tags", r.tags, evenIfEmpty = false)
    r.deletionVector.foreach(deletionVector(json, _))
    r.baseRowId.foreach(json.writeNumberField("baseRowId", _))
    r.defaultRowCommitVersion.foreach(json.writeNumberField("defaultRowCommitVersion", _))
  }

  private def cdc(json: JsonGenerator, c: AddCdcFile): Unit = {
    json.writeStringField("path", c.path)
    map(json, "partitionValues", c.partitionValues)
    json.writeNumberField("size", c.sizeBytes)
    json.writeBooleanField("dataChange", false)
    map(json, "tags", c.tags, evenIfEmpty = false)
  }

  private def metadata(json: JsonGenerator, m: Metadata): Unit = {
    json.writeStringField("id", m.id)
    m.name.foreach(json.writeStringField("name", _))
    m.description.foreach(json.writeStringField("description", _))
    named(json, "format") {
      json.writeStringField("provider", m.format.provider)
      map(json, "options", m.format.options)
    }
    json.writeStringField("schemaString", m.schemaString)
    strings(json, "partitionColumns", m.partitionColumns)
    map(json, "configuration", m.configuration)
    m.createdTimeMs.foreach(json.writeNumberField("createdTime", _))
  }

  private def protocol(json: JsonGenerator, p: Protocol): Unit = {
    json.writeNumberField("minReaderVersion", p.minReaderVersion)
    json.writeNumberField("minWriterVersion", p.minWriterVersion)
    p.readerFeatures.foreach(f => strings(json, "readerFeatures", f.toSeq.sorted))
    p.writerFeatures.foreach(f => strings(json, "writerFeatures", f.toSeq.sorted))
  }

  private def deletionVector(json: JsonGenerator, d: DeletionVectorDescriptor): Unit =
    named(json, "deletionVector") {
      json.writeStringField("storageType", d.storageType)
      json.writeStringField("pathOrInlineDv", d.pathOrInlineDv)
      d.offset.foreach(json.writeNumberField("offset", _))
      json.writeNumberField("sizeInBytes", d.sizeBytes)
      json.writeNumberField("cardinality", d.cardinality)
    }

  private def map(
      json: JsonGenerator,
      field: String,
      values: Map[String, String],
      evenIfEmpty: Boolean = true
  ): Unit =
    if (evenIfEmpty || values.nonEmpty) {
      named(json, field) {
        values.foreach { case (key, value) => json.writeStringField(key, value) }
      }
    }

  private def strings(json: JsonGenerator, field: String, values: Seq[String]): Unit = {
    json.writeArrayFieldStart(field)
    values.foreach(json.writeString)
    json.writeEndArray()
  }
}
