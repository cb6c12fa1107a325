package io.deltaic.spark.commit

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.types.StructType

import io.deltaic.protocol.{DeltaicException, SharedResource}
import io.deltaic.spark.util.Json

/**
 * Records that cross the bridge to Python. `bridge-messages.json` declares them for both languages; Python checks the
 * same declaration (`deltaic.commit.message`).
 *
 * A type is `string`, `long`, `boolean`, `object` (any JSON object), the name of a record, `[type]` for a list, or
 * `{type}` for a map with string keys. `type?` may be null or absent.
 */
private[spark] object Message {

  private lazy val records: Map[String, Map[String, String]] =
    SharedResource.json("bridge-messages.json").properties().asScala.map { entry =>
      entry.getKey -> Json.strings(entry.getValue)
    }.toMap

  /**
   * A record of these fields.
   *
   * @throws io.deltaic.protocol.DeltaicThrowable if they are not those of the declaration
   */
  def of(record: String)(fields: (String, Any)*): ObjectNode = checked(record, Json.obj(fields: _*))

  /** The record itself, if it is as declared; see [[of]]. */
  def checked(record: String, body: ObjectNode): ObjectNode = {
    val declared = records.getOrElse(record, fail(record, "the record is not declared"))
    body.fieldNames.asScala.filterNot(declared.contains).foreach { field =>
      fail(record, s"the field $field is not declared")
    }
    declared.foreach { case (field, kind) => require(record, field, kind, body.get(field)) }
    body
  }

  private def require(record: String, field: String, kind: String, value: JsonNode): Unit =
    if (value == null || value.isNull) {
      if (!kind.endsWith("?")) fail(record, s"the field $field is null")
    } else if (!isOf(record, field, kind.stripSuffix("?"), value))
      fail(record, s"the field $field is not of type $kind")

  private def isOf(
      record: String,
      field: String,
      kind: String,
      value: JsonNode
  ): Boolean = kind match {
    case "string" => value.isTextual
    case "long" => value.isIntegralNumber
    case "boolean" => value.isBoolean
    case "object" => value.isObject
    case _ if kind.startsWith("[") => value.isArray && items(record, field, kind, value)
    case _ if kind.startsWith("{") => value.isObject && items(record, field, kind, value)
    case inner =>
      value match {
        case body: ObjectNode =>
          checked(inner, body)
          true
        case _ => false
      }
  }

  private def items(record: String, field: String, kind: String, value: JsonNode): Boolean = {
    val ofItems = kind.substring(1, kind.length - 1)
    value.elements.asScala.foreach(require(record, field, ofItems, _))
    true
  }

  private def fail(record: String, reason: String): Nothing = throw DeltaicException(
    "DELTAIC_INVALID_BRIDGE_MESSAGE",
    Map("record" -> record, "reason" -> reason)
  )
}

/**
 * The operation of a commit, as the history shows it.
 *
 * @param options the writer's options, keys in lower case
 */
private[spark] final case class OperationInfo(
    name: String,
    parameters: Map[String, String] = Map.empty,
    options: Map[String, String] = Map.empty
) {
  def json: ObjectNode = Message.of("OperationInfo")(
    "name" -> name,
    "parameters" -> parameters,
    "options" -> options
  )
}

/**
 * What a statement or a write specifies of a table to create or replace.
 *
 * @param schema the columns; none if the write has cast its rows to the columns of the table
 * @param constraints the conditions of the CHECK constraints, by name
 */
private[spark] final case class RequestedDefinition(
    schema: Option[StructType] = None,
    partitionBy: Seq[String] = Nil,
    properties: Map[String, String] = Map.empty,
    constraints: Map[String, String] = Map.empty,
    clusterBy: Option[Seq[Seq[String]]] = None,
    description: Option[String] = None
) {
  def json: ObjectNode = Message.of("RequestedDefinition")(
    "schema" -> schema.map(_.json),
    "partitionBy" -> partitionBy,
    "properties" -> properties,
    "constraints" -> constraints,
    "clusterBy" -> clusterBy,
    "description" -> description
  )
}

/**
 * The values of identity columns in the rows of a commit.
 *
 * @param highWaterMarks the high-water marks that the rows reach, by column
 * @param generatedColumns the columns whose values were generated
 */
private[spark] final case class IdentityValues(
    highWaterMarks: Map[String, Long] = Map.empty,
    generatedColumns: Set[String] = Set.empty
) {
  def json: ObjectNode = Message.of("IdentityValues")(
    "highWaterMarks" -> highWaterMarks,
    "generatedColumns" -> generatedColumns
  )
}
