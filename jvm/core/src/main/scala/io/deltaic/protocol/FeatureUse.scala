package io.deltaic.protocol

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonToken.{FIELD_NAME, START_OBJECT, VALUE_STRING}
import com.fasterxml.jackson.core.{JsonParser, JsonProcessingException}
import com.fasterxml.jackson.databind.JsonNode

/**
 * The table metadata that uses a feature, as described in `table-features.json`: a table property, column metadata, or
 * a column type. A trailing `*` in a name matches any suffix.
 *
 * @param property a property and the values, in lower case, that enable the feature
 * @param properties names of properties that use the feature with any value
 */
private[protocol] final case class FeatureUse(
    property: Option[(String, Set[String])],
    properties: Seq[String],
    columnKeys: Seq[String],
    columnTypes: Set[String]
) {
  import FeatureUse.anyMatches

  /** Whether the feature's own property enables it. */
  def isSet(configuration: Map[String, String]): Boolean =
    property.exists { case (name, values) =>
      TableProperties.explicitValue(configuration, name)
        .exists(value => values(value.toLowerCase(java.util.Locale.ROOT)))
    }

  def matches(configuration: Map[String, String], columns: ColumnTraits): Boolean =
    isSet(configuration) ||
    anyMatches(properties, configuration.keySet) ||
    anyMatches(columnKeys, columns.keys) ||
    columnTypes.exists(columns.types)
}

private[protocol] object FeatureUse {

  /** Reads it from a feature's record. */
  def read(json: JsonNode): FeatureUse = {
    val usedBy = json.path("usedBy")
    FeatureUse(
      Option(json.get("enabledBy")).filter(_.isObject).map { enabling =>
        val values = enabling.get("value").textValue.toLowerCase(java.util.Locale.ROOT)
        enabling.get("property").textValue -> values.split('|').toSet
      },
      strings(usedBy.path("properties")),
      strings(usedBy.path("columnMetadata")),
      strings(usedBy.path("columnTypes")).toSet
    )
  }

  private def strings(json: JsonNode): Seq[String] =
    json.elements.asScala.map(_.textValue).toVector

  private def anyMatches(patterns: Seq[String], names: Set[String]): Boolean =
    patterns.exists { pattern =>
      if (pattern.endsWith("*")) names.exists(_.startsWith(pattern.dropRight(1)))
      else names(pattern)
    }
}

/** The keys of column metadata in a schema, and the names of all types. */
private[protocol] final case class ColumnTraits(keys: Set[String], types: Set[String])

private[protocol] object ColumnTraits {

  private val none = ColumnTraits(Set.empty, Set.empty)
  private val typeFields = Set("type", "elementType", "keyType", "valueType", "sqlType")

  def of(schema: String): ColumnTraits = {
    val parser = ActionJson.factory.createParser(schema)
    try {
      val keys = Set.newBuilder[String]
      val types = Set.newBuilder[String]
      var token = parser.nextToken()
      while (token != null) {
        if (token == FIELD_NAME && parser.currentName == "metadata") keys ++= keysOfNext(parser)
        else if (token == VALUE_STRING && typeFields(parser.currentName)) types += parser.getText
        token = parser.nextToken()
      }
      ColumnTraits(keys.result(), types.result())
    } catch {
      // The code that interprets the schema reports the error, with the table.
      case _: JsonProcessingException => none
    } finally parser.close()
  }

  /** The keys of the next value, if that is an object, without those within them. */
  private def keysOfNext(parser: JsonParser): Seq[String] = {
    val keys = Seq.newBuilder[String]
    if (parser.nextToken() == START_OBJECT)
      while (parser.nextToken() == FIELD_NAME) {
        keys += parser.currentName
        parser.nextToken()
        parser.skipChildren()
      }
    keys.result()
  }
}
