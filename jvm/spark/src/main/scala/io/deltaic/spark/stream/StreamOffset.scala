package io.deltaic.spark.stream

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.connector.read.streaming.Offset

import io.deltaic.protocol.{ActionJson, DeltaicException}

/**
 * The position of a stream in a table: it has read up to this file, inclusive. The JSON is that of
 * delta-spark, so that each of the two can continue from checkpoints of the other.
 *
 * @param tableId of the table's metadata
 * @param version the next commit to read, or the one that is being read
 * @param index of the file in the commit, or in the snapshot; or one of the indexes below, which are before the first
 * @param inSnapshot whether it is a file of the whole table at that version, with which a stream begins
 */
private[spark] final case class StreamOffset(
    tableId: String,
    version: Long,
    index: Long,
    inSnapshot: Boolean
) extends Offset {

  /** The last version whose files are in a batch that ends here. */
  def lastVersion: Long = if (isBeforeFiles) version - 1 else version

  /** Whether it is before the first file of its commit or snapshot. */
  def isBeforeFiles: Boolean = index < 0

  /** Whether it is at a change of the tracked schema, or right after it. */
  def isAtSchemaChange: Boolean =
    index == StreamOffset.SchemaChange || index == StreamOffset.AfterSchemaChange

  /** Whether it comes after another offset, as far as the two can be compared. */
  def isAfter(other: StreamOffset): Boolean =
    version > other.version || (version == other.version && index > other.index)

  override def json(): String = ActionJson.mapper
    .createObjectNode()
    .put("sourceVersion", if (isAtSchemaChange) 3 else 1)
    .put("reservoirId", tableId)
    .put("reservoirVersion", version)
    .put("index", if (index == StreamOffset.Base) StreamOffset.BaseInJson else index)
    .put("isStartingVersion", inSnapshot)
    .toString
}

private[spark] object StreamOffset {

  /** The index at the start of a commit or snapshot. */
  val Base: Long = -100L

  /** The same in JSON of source version 1. */
  private val BaseInJson = -1L

  /** The index of a change of the tracked schema, which is before the files of its commit; from source version 3 on. */
  val SchemaChange: Long = -20L

  /** The index right after it. */
  val AfterSchemaChange: Long = -19L

  private val special = Set(Base, SchemaChange, AfterSchemaChange)

  /** The start of a table at a version, with all of its rows. */
  def ofSnapshot(tableId: String, version: Long): StreamOffset =
    StreamOffset(tableId, version, Base, inSnapshot = true)

  /** The start of a commit. */
  def ofCommit(tableId: String, version: Long): StreamOffset =
    StreamOffset(tableId, version, Base, inSnapshot = false)

  /** @param table for errors */
  def parse(table: String, json: String): StreamOffset = {
    def malformed(reason: String): Nothing = throw DeltaicException(
      "DELTAIC_STREAM_OFFSET_MALFORMED",
      Map("table" -> table, "offset" -> json.take(500), "reason" -> reason)
    )
    val node: JsonNode =
      try ActionJson.mapper.readTree(json)
      catch { case e: JsonProcessingException => malformed(e.getOriginalMessage) }
    def field(name: String): JsonNode =
      Option(node.get(name)).getOrElse(malformed(s"it has no field $name"))
    def number(name: String): Long =
      Option(
        field(name)
      ).filter(_.isIntegralNumber).fold(malformed(s"$name is no number"))(_.longValue)
    val source = number("sourceVersion")
    val index = number("index")
    val normalized = if (source == 1 && index == BaseInJson) Base else index
    if (source != 1 && source != 3)
      malformed(s"this version of Deltaic does not know sourceVersion $source")
    if (normalized < 0 && !special(normalized)) malformed(s"index $index is unknown")
    StreamOffset(
      field("reservoirId").asText,
      number("reservoirVersion"),
      normalized,
      field("isStartingVersion").asBoolean
    )
  }
}
