package io.deltaic.spark.commit

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.HexFormat

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

import io.deltaic.spark.util.Json

/**
 * The long strings of a request to Python, and of its response. A schema of thousands of columns is in every
 * request and response of every commit, and the bridge is slow with long strings; so each string crosses once.
 * A request has null in its place, and lists the place with the digest of the string:
 * {{{
 *   {"table": ..., "schema": null, "interned": [{"at": ["schema"], "digest": "9f86..."}]}
 * }}}
 * Python caches the strings that it has received. If it lacks one, it returns `{"missing": true}` before it does
 * anything else, and the request is sent again with the strings themselves: `"strings": {"9f86...": "..."}`. A
 * response refers to the strings of its request in the same way.
 */
private[spark] final class InternedStrings(request: ObjectNode) {
  import InternedStrings._

  private val strings = mutable.LinkedHashMap.empty[String, String]
  private val places = Vector.newBuilder[ObjectNode]

  /** A copy: the request itself may be in use elsewhere. */
  private val shortened: ObjectNode = {
    val short = shorten(request, Vector.empty)
    if (strings.nonEmpty) short.set[JsonNode](Positions, Json.of(places.result()))
    short
  }

  def send(transport: String => String): ObjectNode = {
    val response = Json.parse(transport(shortened.toString))
    if (response.path("missing").asBoolean(false)) {
      val full = shortened.deepCopy().set[ObjectNode](Strings, Json.of(strings))
      restore(Json.parse(transport(full.toString)))
    } else restore(response)
  }

  private def shorten(node: ObjectNode, at: Vector[String]): ObjectNode = {
    val short = Json.obj()
    node.properties().asScala.foreach { entry =>
      val here = at :+ entry.getKey
      val value = entry.getValue match {
        case inner: ObjectNode => shorten(inner, here)
        case long if long.isTextual && long.textValue.length > LongerThan =>
          places += Json.obj("at" -> here, "digest" -> intern(long.textValue))
          null
        case other => other
      }
      short.set[JsonNode](entry.getKey, value)
    }
    short
  }

  private def intern(string: String): String = {
    val digest =
      HexFormat.of.formatHex(MessageDigest.getInstance("SHA-256").digest(string.getBytes(UTF_8)))
    strings(digest) = string
    digest
  }

  /** Puts the strings into the places that a response lists. */
  private def restore(response: ObjectNode): ObjectNode = {
    response.path(Positions).elements.asScala.foreach { place =>
      val path = place.required("at").elements.asScala.map(_.textValue).toVector
      val parent = path.init.foldLeft[JsonNode](response)(_.required(_)).asInstanceOf[ObjectNode]
      parent.put(path.last, strings(place.required("digest").textValue))
    }
    response.remove(Positions)
    response
  }
}

private[spark] object InternedStrings {
  private val Positions = "interned"
  private val Strings = "strings"

  /** In characters. Sending a shorter string costs less than a second request. */
  private val LongerThan = 4096

  /** Sends a request by `transport`, a second time if Python lacks a string of it. */
  def send(request: ObjectNode)(transport: String => String): ObjectNode =
    new InternedStrings(request).send(transport)
}
