package io.deltaic.protocol

import java.nio.ByteBuffer
import java.util.UUID

/**
 * Z85, the base-85 encoding of inline deletion vectors and deletion vector file ids in the log
 * (Protocol § Deletion Vector Descriptor Schema; ZeroMQ RFC 32).
 *
 * Four bytes, read as one big-endian number, become five characters. Z85 itself supports only whole
 * groups; a last group of one to three bytes is padded with zero bytes, which the reader removes,
 * because `sizeInBytes` is the size without padding.
 */
private[deltaic] object Z85 {

  /** The number of characters of a UUID: sixteen bytes are four whole groups. */
  val UuidChars: Int = 20

  private val BytesPerGroup = 4
  private val CharsPerGroup = 5
  private val Radix = 85
  private val MaxGroup = 0xffffffffL
  private val Alphabet =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

  /** The digit that each ASCII character stands for, or -1. */
  private val digits: Array[Byte] = {
    val table = Array.fill[Byte](128)(-1)
    Alphabet.indices.foreach(digit => table(Alphabet.charAt(digit).toInt) = digit.toByte)
    table
  }

  /** Encodes `bytes`, padded with zero bytes to a whole group. */
  def encode(bytes: Array[Byte]): String = {
    val text = new StringBuilder(encodedChars(bytes.length).toInt)
    var start = 0
    while (start < bytes.length) {
      appendGroup(groupAt(bytes, start), text)
      start += BytesPerGroup
    }
    text.toString
  }

  /**
   * The first `sizeBytes` bytes that `text` encodes, or the reason why it is invalid: a length that
   * does not match the size, an invalid character, a group above 2^32^ - 1.
   */
  def decode(text: String, sizeBytes: Int): Either[String, Array[Byte]] =
    if (sizeBytes < 0) Left(s"the size $sizeBytes is negative")
    else if (text.length != encodedChars(sizeBytes)) {
      Left(
        s"$sizeBytes bytes need ${encodedChars(sizeBytes)} Z85 characters, but there are " +
          s"${text.length}"
      )
    } else decodeGroups(text, new Array[Byte](sizeBytes))

  def encodeUuid(uuid: UUID): String = encode(
    ByteBuffer
      .allocate(16)
      .putLong(uuid.getMostSignificantBits)
      .putLong(uuid.getLeastSignificantBits)
      .array()
  )

  def decodeUuid(text: String): Either[String, UUID] = decode(text, 16).map { bytes =>
    val words = ByteBuffer.wrap(bytes)
    new UUID(words.getLong, words.getLong)
  }

  private def encodedChars(sizeBytes: Int): Long =
    (sizeBytes.toLong + BytesPerGroup - 1) / BytesPerGroup * CharsPerGroup

  private def groupAt(bytes: Array[Byte], start: Int): Long = {
    var group = 0L
    var i = start
    while (i < start + BytesPerGroup) {
      group = group << 8 | (if (i < bytes.length) bytes(i) & 0xff else 0)
      i += 1
    }
    group
  }

  private def appendGroup(group: Long, text: StringBuilder): Unit = {
    var divisor = 52200625L // 85^4
    while (divisor > 0) {
      text.append(Alphabet.charAt((group / divisor % Radix).toInt))
      divisor /= Radix
    }
  }

  private def decodeGroups(text: String, bytes: Array[Byte]): Either[String, Array[Byte]] = {
    var at = 0
    var to = 0
    while (at < text.length) {
      var group = 0L
      val end = at + CharsPerGroup
      while (at < end) {
        val char = text.charAt(at)
        val digit = if (char < 128) digits(char.toInt) else -1
        if (digit < 0) return Left(s"character ${at + 1} of the Z85 text is not one of Z85's")
        group = group * Radix + digit
        at += 1
      }
      if (group > MaxGroup) return Left(s"the Z85 group that ends at character $at is too large")
      var shift = 24
      while (shift >= 0 && to < bytes.length) {
        bytes(to) = (group >>> shift).toByte
        to += 1
        shift -= 8
      }
    }
    Right(bytes)
  }
}
