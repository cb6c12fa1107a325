package io.deltaic.protocol

import com.fasterxml.jackson.core.JsonToken.{FIELD_NAME, VALUE_STRING}
import com.fasterxml.jackson.core.{JsonParser, JsonProcessingException}

/**
 * Which table features the metadata of a table puts to use: by a table property, by metadata of a column or by the type
 * of one. Whether the protocol supports them is another matter (Protocol § Active Features).
 */
private[deltaic] object FeatureUse {

  private val byTrueProperty = Map(
    "delta.appendOnly" -> "appendOnly",
    "delta.enableChangeDataFeed" -> "changeDataFeed",
    "delta.enableDeletionVectors" -> "deletionVectors",
    "delta.enableInCommitTimestamps" -> "inCommitTimestamp",
    "delta.enableRowTracking" -> "rowTracking",
    "delta.enableTypeWidening" -> "typeWidening",
    "delta.enableVariantShredding" -> "variantShredding",
    "delta.enableIcebergCompatV1" -> "icebergCompatV1",
    "delta.enableIcebergCompatV2" -> "icebergCompatV2",
    "delta.enableIcebergWriterCompatV1" -> "icebergWriterCompatV1"
  )

  private val byColumnKey = Map(
    "delta.invariants" -> "invariants",
    "delta.generationExpression" -> "generatedColumns",
    "CURRENT_DEFAULT" -> "allowColumnDefaults",
    "delta.typeChanges" -> "typeWidening",
    "__COLLATIONS" -> "collations"
  )

  private val typeFields = Set("type", "elementType", "keyType", "valueType")
  private val byType = Map("timestamp_ntz" -> "timestampNtz", "variant" -> "variantType")

  def of(metadata: Metadata): Set[String] =
    fromProperties(metadata.configuration) ++ fromSchema(metadata.schemaString)

  private def fromProperties(properties: Map[String, String]): Set[String] =
    properties.flatMap {
      case (name, _) if name.startsWith("delta.constraints.") => Some("checkConstraints")
      case ("delta.columnMapping.mode", mode) if !mode.equalsIgnoreCase("none") =>
        Some("columnMapping")
      case ("delta.checkpointPolicy", "v2") => Some("v2Checkpoint")
      case (name, value) => byTrueProperty.get(name).filter(_ => "true".equalsIgnoreCase(value))
    }.toSet

  private def fromSchema(schema: String): Set[String] = {
    val parser = ActionJson.factory.createParser(schema)
    try fromSchema(parser)
    catch {
      // Whoever interprets the schema reports what is wrong with it, knowing the table.
      case _: JsonProcessingException => Set.empty
    } finally parser.close()
  }

  private def fromSchema(parser: JsonParser): Set[String] = {
    var used = Set.empty[String]
    var token = parser.nextToken()
    while (token != null) {
      if (token == FIELD_NAME) {
        val key = parser.currentName
        used ++= byColumnKey.get(key)
        if (key.startsWith("delta.identity.")) used += "identityColumns"
      } else if (token == VALUE_STRING && typeFields(parser.currentName)) {
        used ++= byType.get(parser.getText)
      }
      token = parser.nextToken()
    }
    used
  }
}
