package io.deltaic.log

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import scala.collection.mutable
import scala.util.Using

import com.fasterxml.jackson.core.{JsonParser, JsonToken}
import com.fasterxml.jackson.databind.node.ObjectNode
import com.fasterxml.jackson.databind.{DeserializationFeature, ObjectMapper}
import org.apache.hadoop.fs.Path
import org.slf4j.LoggerFactory

/**
 * `_last_checkpoint` (Protocol § Last Checkpoint File), a hint at the version from which to list the log.
 *
 * Only its version is used. An embedded V2 checkpoint is not: this file may be overwritten at any time and belongs to
 * no version, so its table state would have to be checked against the checkpoint, and that is the read it was meant to
 * save.
 */
private[deltaic] object LastCheckpoint {

  private val logger = LoggerFactory.getLogger(getClass)

  /** Rule 7: an object with a duplicate field name makes the file invalid. */
  private val mapper =
    new ObjectMapper().enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY)

  /** The version in the file; None if the file is missing or invalid. */
  def version(logDirectory: Path, store: LogStore): Option[Long] = {
    val file = new Path(logDirectory, FileNames.LastCheckpoint)
    try {
      val content = store.read(file)
      mapper.readTree(content) match {
        case hint: ObjectNode if !hasRightChecksum(hint, content) =>
          logger.warn("{} is ignored: its checksum is wrong", file)
          None
        case hint: ObjectNode =>
          Some(hint.path("version"))
            .filter(_.canConvertToLong)
            .map(_.longValue)
            .filter(_ >= 0)
        case _ => None
      }
    } catch { case _: IOException => None }
  }

  /** Writes the hint with its checksum, unless the file names a newer checkpoint. */
  def write(logDirectory: Path, store: LogStore, hint: ObjectNode): Unit =
    if (!version(logDirectory, store).exists(_ > hint.path("version").longValue)) {
      hint.put("checksum", checksum(mapper.writeValueAsBytes(hint)))
      val content = mapper.writeValueAsBytes(hint)
      store.replace(new Path(logDirectory, FileNames.LastCheckpoint), content)
    }

  private def hasRightChecksum(hint: ObjectNode, content: Array[Byte]): Boolean =
    hint.path("checksum") match {
      case stored if stored.isTextual => stored.textValue.equalsIgnoreCase(checksum(content))
      case _ => true
    }

  /** Protocol § JSON checksum. */
  def checksum(json: Array[Byte]): String =
    MessageDigest
      .getInstance("MD5")
      .digest(canonical(json).getBytes(UTF_8))
      .map(b => f"${b & 0xff}%02x")
      .mkString

  /** The canonical form of the JSON string itself: a parsed number loses its spelling. */
  def canonical(json: Array[Byte]): String = {
    val pairs = mutable.ArrayBuffer.empty[(String, String)]
    Using.resource(mapper.createParser(json)) { parser =>
      parser.nextToken()
      addLeaves(parser, "", (path, value) => pairs += path -> value)
    }
    // Canonical paths are ASCII, so that their order as strings is their order as bytes.
    pairs
      .filter(_._1 != quoted("checksum"))
      .sortBy(_._1)
      .map { case (path, value) => s"$path=$value" }
      .mkString(",")
  }

  /** Each leaf of the value at which the parser stands, with the path to it. */
  private def addLeaves(parser: JsonParser, path: String, add: (String, String) => Unit): Unit = {
    def below(segment: String): String = if (path.isEmpty) segment else s"$path+$segment"
    parser.currentToken match {
      case JsonToken.START_OBJECT =>
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
          val name = quoted(parser.currentName)
          parser.nextToken()
          addLeaves(parser, below(name), add)
        }
      case JsonToken.START_ARRAY =>
        var i = 0
        while (parser.nextToken() != JsonToken.END_ARRAY) {
          addLeaves(parser, below(i.toString), add)
          i += 1
        }
      case JsonToken.VALUE_STRING => add(path, quoted(parser.getText))
      case _ => add(path, parser.getText)
    }
  }

  private def quoted(text: String): String = {
    val out = new StringBuilder("\"")
    text.getBytes(UTF_8).foreach { b =>
      val c = (b & 0xff).toChar
      val isPlain = c < 128 && (Character.isLetterOrDigit(c) || "-._~".indexOf(c.toInt) >= 0)
      if (isPlain) out.append(c) else out.append(f"%%${b & 0xff}%02X")
    }
    out.append('"').toString
  }
}
