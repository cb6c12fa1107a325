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
 * `_last_checkpoint` (Protocol § Last Checkpoint File), a hint at where to begin to list the log.
 *
 * Of what it says nothing but the version is taken. A V2 checkpoint that is embedded in it is not: this file is overwritten at
 * any time and belongs to no version, so what it says of the table's state would have to be checked against the
 * checkpoint, which is what reading it was to save.
 */
private[deltaic] object LastCheckpoint {

  private val logger = LoggerFactory.getLogger(getClass)

  /** Rule 7: a file with a name twice in one object is invalid. */
  private val mapper =
    new ObjectMapper().enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY)

  /** The version it names; None when it is missing or not to be trusted. */
  def version(logDirectory: Path, store: LogStore): Option[Long] = {
    val file = new Path(logDirectory, FileNames.LastCheckpoint)
    try {
      val content = store.read(file)
      mapper.readTree(content) match {
        case hint: ObjectNode if !hasRightChecksum(hint, content) =>
          logger.warn("{} is passed over: its checksum is wrong", file)
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

  /** Makes the file say this, with its checksum, unless it names a newer checkpoint. */
  def write(logDirectory: Path, store: LogStore, hint: ObjectNode): Unit =
    if (!version(logDirectory, store).exists(_ > hint.path("version").longValue)) {
      hint.put("checksum", checksum(mapper.writeValueAsBytes(hint)))
      val text = mapper.writeValueAsBytes(hint)
      store.replace(new Path(logDirectory, FileNames.LastCheckpoint), text)
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

  /** Of the text itself: a parsed number no longer tells how it is written. */
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
