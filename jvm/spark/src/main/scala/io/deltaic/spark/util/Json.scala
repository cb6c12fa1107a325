package io.deltaic.spark.util

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.core.json.JsonReadFeature
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode}

/** The JSON of the bridge to Python, and of file statistics. */
private[deltaic] object Json {

  /** Numbers keep all their digits: a bound that lost some would no longer be a bound. */
  private val mapper = JsonMapper
    .builder()
    .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
    .enable(JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS)
    .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
    .build()

  def obj(fields: (String, Any)*): ObjectNode = {
    val node = mapper.createObjectNode()
    fields.foreach { case (name, value) => node.set[JsonNode](name, of(value)) }
    node
  }

  /** Converts options, maps, sequences and scalars of Scala to JSON; `None` becomes null. */
  def of(value: Any): JsonNode = value match {
    case null | None => mapper.nullNode()
    case Some(inner) => of(inner)
    case node: JsonNode => node
    case map: scala.collection.Map[_, _] =>
      obj(map.iterator.map { case (k, v) => k.toString -> v }.toSeq: _*)
    case items: Iterable[_] =>
      val array = mapper.createArrayNode()
      items.foreach(item => array.add(of(item)))
      array
    case other => mapper.valueToTree[JsonNode](other)
  }

  def parse(text: String): ObjectNode = mapper.readTree(text) match {
    case node: ObjectNode => node
    case other =>
      throw new IllegalArgumentException(s"expected a JSON object, got ${other.getNodeType}")
  }

  def parseStrings(text: String): Seq[String] = stringsIn(mapper.readTree(text))

  /** The items of a list. */
  def stringsIn(list: JsonNode): Seq[String] = list.elements.asScala.map(_.asText).toVector

  /** Parses a string that another writer wrote; none if it is not a JSON object. */
  def tryParse(text: String): Option[ObjectNode] =
    try Some(parse(text))
    catch { case _: JsonProcessingException | _: IllegalArgumentException => None }

  /** The fields of an object, which are whole numbers. */
  def numbers(node: JsonNode): Map[String, Long] =
    node.properties().asScala.map(entry => entry.getKey -> entry.getValue.longValue).toMap

  /** The fields of an object that are not null, as strings. */
  def strings(node: JsonNode): Map[String, String] =
    if (node == null || node.isNull) Map.empty
    else
      node.properties().asScala
        .filterNot(_.getValue.isNull)
        .map(field => field.getKey -> field.getValue.asText)
        .toMap
}
