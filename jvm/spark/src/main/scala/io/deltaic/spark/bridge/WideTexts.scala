package io.deltaic.spark.bridge

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest
import java.util.HexFormat

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

/**
 * The long texts of one question to Python, and of its answer. A schema of thousands of columns is in every
 * question and answer of every commit, and the bridge is slow at long texts; so it crosses once. Where it
 * stands in a question is null, and beside the question is said which text belongs there, by its digest:
 * {{{
 *   {"table": ..., "schema": null, "wide": [{"at": ["schema"], "digest": "9f86..."}]}
 * }}}
 * Python remembers what it was told before. If it does not, it answers `{"lacks": true}` before it decides
 * anything, and is asked the same again with the texts themselves: `"texts": {"9f86...": "..."}`. An answer
 * speaks in the same way of texts of its question.
 */
private[bridge] final class WideTexts(question: ObjectNode) {
  import WideTexts._

  private val texts = mutable.LinkedHashMap.empty[String, String]
  private val places = Vector.newBuilder[ObjectNode]

  /** The question itself may be in use elsewhere, and stays as it is. */
  private val shortened: ObjectNode = {
    val short = without(question, Vector.empty)
    if (texts.nonEmpty) short.set[JsonNode](Places, Json.of(places.result()))
    short
  }

  def ask(send: String => String): ObjectNode = {
    val reply = Json.parse(send(shortened.toString))
    if (reply.path("lacks").asBoolean(false))
      whole(Json.parse(send(shortened.deepCopy().set[ObjectNode](Texts, Json.of(texts)).toString)))
    else whole(reply)
  }

  private def without(node: ObjectNode, at: Vector[String]): ObjectNode = {
    val short = Json.obj()
    node.properties().asScala.foreach { entry =>
      val here = at :+ entry.getKey
      val value = entry.getValue match {
        case inner: ObjectNode => without(inner, here)
        case text if text.isTextual && text.textValue.length > LongerThan =>
          places += Json.obj("at" -> here, "digest" -> remembered(text.textValue))
          null
        case other => other
      }
      short.set[JsonNode](entry.getKey, value)
    }
    short
  }

  private def remembered(text: String): String = {
    val digest =
      HexFormat.of.formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8)))
    texts(digest) = text
    digest
  }

  /** Puts the texts where an answer says they belong. */
  private def whole(reply: ObjectNode): ObjectNode = {
    reply.path(Places).elements.asScala.foreach { place =>
      val path = place.required("at").elements.asScala.map(_.textValue).toVector
      val parent = path.init.foldLeft[JsonNode](reply)(_.required(_)).asInstanceOf[ObjectNode]
      parent.put(path.last, texts(place.required("digest").textValue))
    }
    reply.remove(Places)
    reply
  }
}

private[spark] object WideTexts {
  private val Places = "wide"
  private val Texts = "texts"

  /** Shorter ones cost less than an answer that they are not known. */
  private val LongerThan = 4096

  /** Asks a question by `send`, which Python may answer by asking for more. */
  def ask(question: ObjectNode)(send: String => String): ObjectNode =
    new WideTexts(question).ask(send)
}
