package io.deltaic.spark.stream

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.types.{DataType, StructType}

import io.deltaic.protocol.{ActionJson, DeltaicThrowable, Metadata, Protocol}
import io.deltaic.replay.Snapshot

/**
 * The definition of a table with which a stream reads it, as recorded in its schema tracking log. The JSON is that of
 * delta-spark, so that each of the two can continue with the log of the other.
 *
 * @param tableId of the table's metadata
 * @param version whose definition it is
 * @param partitionColumns their names
 * @param configuration the table's properties; None in entries of old writers
 * @param protocol None in entries of old writers
 * @param sourcePath the source's checkpoint directory
 * @param previous the number of the entry before, if it is not the preceding one
 */
private[spark] final case class TrackedSchema(
    tableId: String,
    version: Long,
    schemaString: String,
    partitionColumns: Seq[String],
    configuration: Option[Map[String, String]],
    protocol: Option[Protocol],
    sourcePath: String,
    previous: Option[Long] = None
) {

  def schema: StructType = TrackedSchema.parse(schemaString)

  /**
   * The same definition as a snapshot without files.
   *
   * @param latest of the table, with what an entry does not contain
   */
  def definition(latest: Snapshot): Snapshot = {
    val metadata = latest.metadata.copy(
      schemaString = schemaString,
      partitionColumns = partitionColumns,
      configuration = configuration.getOrElse(latest.metadata.configuration)
    )
    latest.definedAs(version, protocol.getOrElse(latest.protocol), metadata)
  }

  def json: String = {
    val partitions = StructType(partitionColumns.map(schema(_)))
    val json = ActionJson.mapper.createObjectNode()
      .put("tableId", tableId)
      .put("deltaCommitVersion", version)
      .put("dataSchemaJson", schemaString)
      .put("partitionSchemaJson", partitions.json)
      .put("sourceMetadataPath", sourcePath)
    configuration.foreach { properties =>
      val fields = json.putObject("tableConfigurations")
      properties.foreach { case (key, value) => fields.put(key, value) }
    }
    protocol.foreach(action => json.put("protocolJson", ActionJson.write(action)))
    previous.foreach(json.put("previousMetadataSeqNum", _))
    json.toString
  }
}

private[spark] object TrackedSchema {

  def of(
      tableId: String,
      version: Long,
      protocol: Protocol,
      metadata: Metadata,
      sourcePath: String
  ): TrackedSchema = TrackedSchema(
    tableId,
    version,
    metadata.schemaString,
    metadata.partitionColumns,
    Some(metadata.configuration),
    Some(protocol),
    sourcePath
  )

  /** @throws IllegalArgumentException for what is not the JSON of an entry */
  def read(json: String): TrackedSchema = {
    val node =
      try ActionJson.mapper.readTree(json)
      catch { case e: JsonProcessingException => malformed(e.getOriginalMessage) }
    def field(name: String): JsonNode =
      optional(node, name).getOrElse(malformed(s"it has no field $name"))
    TrackedSchema(
      tableId = field("tableId").asText,
      version = field("deltaCommitVersion").asLong,
      schemaString = parse(field("dataSchemaJson").asText).json,
      partitionColumns = parse(field("partitionSchemaJson").asText).fieldNames.toSeq,
      configuration = optional(node, "tableConfigurations").map { properties =>
        properties.properties().asScala.map(e => e.getKey -> e.getValue.asText).toMap
      },
      protocol = optional(node, "protocolJson").map(action => protocolOf(action.asText)),
      sourcePath = field("sourceMetadataPath").asText,
      previous = optional(node, "previousMetadataSeqNum").map(_.asLong)
    )
  }

  private def optional(node: JsonNode, name: String): Option[JsonNode] =
    Option(node.get(name)).filterNot(_.isNull)

  private def protocolOf(action: String): Protocol =
    try
      ActionJson.parse(action)
        .collect { case protocol: Protocol => protocol }
        .getOrElse(malformed("protocolJson is not a protocol"))
    catch { case e: DeltaicThrowable => malformed(e.getMessage) }

  private def parse(schema: String): StructType =
    try DataType.fromJson(schema).asInstanceOf[StructType]
    catch { case NonFatal(e) => malformed(s"a schema cannot be parsed: ${e.getMessage}") }

  private def malformed(reason: String): Nothing = throw new IllegalArgumentException(reason)
}
