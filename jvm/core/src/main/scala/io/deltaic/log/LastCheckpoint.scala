package io.deltaic.log

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode, ObjectMapper}
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
    try
      mapper.readTree(store.read(file)) match {
        case hint: ObjectNode if !hasRightChecksum(hint) =>
          logger.warn("{} is passed over: its checksum is wrong", file)
          None
        case hint: ObjectNode =>
          Some(hint.path("version"))
            .filter(_.canConvertToLong)
            .map(_.longValue)
            .filter(_ >= 0)
        case _ => None
      }
    catch { case _: IOException => None }
  }

  /** Makes the file say this, with its checksum, unless it names a newer checkpoint. */
  def write(logDirectory: Path, store: LogStore, hint: ObjectNode): Unit =
    if (!version(logDirectory, store).exists(_ > hint.path("version").longValue)) {
      hint.put("checksum", checksum(hint))
      val text = mapper.writeValueAsBytes(hint)
      store.replace(new Path(logDirectory, FileNames.LastCheckpoint), text)
    }

  private def hasRightChecksum(hint: ObjectNode): Boolean = hint.path("checksum") match {
    case stored if stored.isTextual => stored.textValue.equalsIgnoreCase(checksum(hint))
    case _ => true
  }

  /** Protocol § JSON checksum. */
  def checksum(json: ObjectNode): String =
    MessageDigest
      .getInstance("MD5")
      .digest(canonical(json).getBytes(UTF_8))
      .map(b => f"${b & 0xff}%02x")
      .mkString

  def canonical(json: ObjectNode): String = {
    val top = json.properties.asScala.toSeq.filter(_.getKey != "checksum")
    val pairs = top.flatMap(e => leaves(quoted(e.getKey), e.getValue))
    // Canonical paths are ASCII, so that their order as strings is their order as bytes.
    pairs.sortBy(_._1).map { case (path, value) => s"$path=$value" }.mkString(",")
  }

  /** Each leaf below a node, with the path to it. */
  private def leaves(path: String, node: JsonNode): Seq[(String, String)] = node match {
    case inner: ObjectNode =>
      inner.properties.asScala.toSeq.flatMap(e => leaves(s"$path+${quoted(e.getKey)}", e.getValue))
    case array: ArrayNode =>
      array.elements.asScala.toSeq.zipWithIndex.flatMap { case (e, i) => leaves(s"$path+$i", e) }
    case text if text.isTextual => Seq(path -> quoted(text.textValue))
    case other => Seq(path -> other.asText)
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
