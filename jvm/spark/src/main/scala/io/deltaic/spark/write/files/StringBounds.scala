package io.deltaic.spark.write.files

import java.nio.charset.StandardCharsets
import java.nio.{ByteBuffer, CharBuffer}

/**
 * Bounds for strings that are truncated to a prefix (Protocol § Per-file Statistics, footnote 1).
 *
 * Strings are compared by their UTF-8 bytes, which is the order of their code points. A prefix is
 * never greater than the whole, so it is a lower bound. An upper bound needs one more character
 * that is greater than the first truncated character. Bytes that are not UTF-8 cannot be written to JSON,
 * so they get no bound. Readers ignore a bound with U+FFFD, which may stand for such bytes.
 */
private[write] object StringBounds {

  /** The first `length` code points of a UTF-8 string: less than or equal to it. */
  def lower(utf8: Array[Byte], length: Int): Option[String] =
    leading(utf8, length).map(text => text.substring(0, prefixEnd(text, length)))

  /**
   * The string itself if it is short enough, else a prefix with a character appended, which is greater
   * than it.
   */
  def upper(utf8: Array[Byte], length: Int): Option[String] =
    leading(utf8, length).flatMap { text =>
      val end = prefixEnd(text, length)
      if (end == text.length) Some(text)
      else text.codePointAt(end) match {
        case next if next < LastOfAscii =>
          Some(text.substring(0, end) + Character.toString(LastOfAscii))
        case next if next < Character.MAX_CODE_POINT =>
          Some(text.substring(0, end) + Character.toString(Character.MAX_CODE_POINT))
        case _ => None
      }
    }

  private def prefixEnd(text: String, length: Int): Int =
    if (text.codePointCount(0, text.length) <= length) text.length
    else text.offsetByCodePoints(0, length)

  /** At least the first `length + 1` code points, or the whole string if it has fewer. */
  private def leading(utf8: Array[Byte], length: Int): Option[String] = {
    val windowBytes = math.min(utf8.length.toLong, 4L * (length + 1L)).toInt
    val chars = CharBuffer.allocate(windowBytes)
    val result = StandardCharsets.UTF_8
      .newDecoder()
      .decode(ByteBuffer.wrap(utf8, 0, windowBytes), chars, windowBytes == utf8.length)
    if (result.isError) None else Some(chars.flip().toString)
  }

  private val LastOfAscii = 0x7f
}
