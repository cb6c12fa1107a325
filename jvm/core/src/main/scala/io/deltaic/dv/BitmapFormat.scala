package io.deltaic.dv

import java.io.IOException
import java.nio.{ByteBuffer, ByteOrder}

import org.roaringbitmap.RoaringBitmap

/** The bytes are not a deletion vector. The message describes the error for people. */
private[dv] sealed abstract class BitmapFormatException(message: String, cause: Throwable)
    extends IllegalArgumentException(message, cause)

/** The bytes contradict the format. */
private[dv] final class MalformedBitmapException(message: String, cause: Throwable = null)
    extends BitmapFormatException(message, cause)

/** The bytes start with the magic number of another format, maybe a future one. */
private[dv] final class UnknownBitmapFormatException(message: String)
    extends BitmapFormatException(message, null)

/**
 * The bytes of a deletion vector (Protocol § Deletion Vector Format), all little endian:
 *
 * {{{
 * magic      int32   1681511377
 * buckets    int64   number of buckets; then for each bucket, by ascending key:
 *   key        int32   upper half of the bucket's rows; its highest bit is 0
 *   bitmap             lower halves of the bucket's rows, in Roaring's 32-bit format
 * }}}
 *
 * Only this is written. An older layout, in which a bucket's key is its index, can be read as well:
 *
 * {{{
 * magic      int32   1681511376
 * buckets    int32   number of buckets; then for each bucket, from key 0 on:
 *   size       int32   of the bitmap in bytes
 *   bitmap             as above
 * }}}
 *
 * The protocol no longer describes it, but its example of an inline vector (Protocol § JSON Example
 * 3) uses it, with big-endian numbers around the bitmap; delta-spark reads it with little-endian
 * numbers. Both are accepted.
 *
 * Input is not trusted: a bitmap is passed to the Roaring library only after [[RoaringLayout]] has
 * validated it, because the library trusts the counts and sizes in its input.
 */
private[dv] object BitmapFormat {

  private val Magic = 1681511377
  private val OldMagic = 1681511376

  private val MagicBytes = 4
  private val CountBytes = 8
  private val KeyBytes = 4

  /** Key and bitmap of an empty bucket, the shortest one. */
  private val MinBucketBytes = KeyBytes + 8

  /** The number of bytes that [[write]] produces for these buckets. */
  def sizeBytes(buckets: Array[RoaringBitmap], count: Int): Long = {
    var total = (MagicBytes + CountBytes).toLong
    var i = 0
    while (i < count) {
      total += KeyBytes + buckets(i).serializedSizeInBytes
      i += 1
    }
    total
  }

  /** Writes the first `count` buckets to an array of exactly [[sizeBytes]] bytes. */
  def write(keys: Array[Int], buckets: Array[RoaringBitmap], count: Int, to: Array[Byte]): Unit = {
    val out = ByteBuffer.wrap(to).order(ByteOrder.LITTLE_ENDIAN)
    out.putInt(Magic).putLong(count.toLong)
    var i = 0
    while (i < count) {
      out.putInt(keys(i))
      buckets(i).serialize(out)
      i += 1
    }
  }

  /**
   * Reads a bitmap of [[write]] or any other Delta writer, into arrays without empty buckets.
   *
   * @throws BitmapFormatException if the bytes are anything else
   */
  def read(bytes: Array[Byte], start: Int, sizeBytes: Int): (Array[Int], Array[RoaringBitmap]) = {
    val in = ByteBuffer.wrap(bytes, start, sizeBytes).slice().order(ByteOrder.LITTLE_ENDIAN)
    need(in, MagicBytes)
    val magic = in.getInt
    val buckets =
      if (magic == Magic) readPortable(in)
      else if (magic == OldMagic) readOld(in, ByteOrder.LITTLE_ENDIAN)
      else if (Integer.reverseBytes(magic) == OldMagic) readOld(in, ByteOrder.BIG_ENDIAN)
      else {
        throw new UnknownBitmapFormatException(s"the bitmap's magic number is $magic, not $Magic")
      }
    checkRest(in)
    buckets.result()
  }

  private def readPortable(in: ByteBuffer): Buckets = {
    need(in, CountBytes)
    val count = checkCount(in.getLong, in)
    val buckets = new Buckets(count)
    var lastKey = -1
    var i = 0
    while (i < count) {
      need(in, MinBucketBytes)
      val key = in.getInt
      if (key <= lastKey) {
        throw new MalformedBitmapException(s"bucket key $key follows $lastKey: keys must ascend")
      }
      lastKey = key
      buckets.add(key, readBitmap(in))
      i += 1
    }
    buckets
  }

  private def readOld(in: ByteBuffer, order: ByteOrder): Buckets = {
    def int32(): Int = {
      need(in, 4)
      val number = in.getInt
      if (order == ByteOrder.LITTLE_ENDIAN) number else Integer.reverseBytes(number)
    }
    val count = checkCount(int32().toLong, in)
    val buckets = new Buckets(count)
    var i = 0
    while (i < count) {
      val claimed = int32()
      val start = in.position()
      buckets.add(i, readBitmap(in))
      if (in.position() - start != claimed) {
        throw new MalformedBitmapException(
          s"a bucket of ${in.position() - start} bytes claims to have $claimed bytes"
        )
      }
      i += 1
    }
    buckets
  }

  private def checkCount(count: Long, in: ByteBuffer): Int =
    if (count >= 0 && count <= in.remaining / MinBucketBytes) count.toInt
    else {
      throw new MalformedBitmapException(
        s"$count buckets do not fit into the ${in.remaining} bytes that follow"
      )
    }

  private def readBitmap(in: ByteBuffer): RoaringBitmap = {
    val start = in.position()
    val end = RoaringLayout.check(in, start)
    val bitmap = new RoaringBitmap()
    try bitmap.deserialize(in.slice(start, end - start).order(ByteOrder.LITTLE_ENDIAN))
    catch {
      case error @ (_: IOException | _: RuntimeException) =>
        throw new MalformedBitmapException(s"a bucket cannot be decoded: $error", error)
    }
    in.position(end)
    bitmap
  }

  /** Some writers include padding in the size (Trino did until 2026); zeros are harmless. */
  private def checkRest(in: ByteBuffer): Unit = {
    val rest = in.remaining
    while (in.hasRemaining)
      if (in.get() != 0) {
        throw new MalformedBitmapException(s"$rest bytes follow the last bucket")
      }
  }

  private def need(in: ByteBuffer, bytes: Int): Unit =
    if (in.remaining < bytes) {
      throw new MalformedBitmapException("the bytes end before the bitmap does")
    }

  /** Collects buckets, leaving out those without rows. */
  private final class Buckets(capacity: Int) {
    private val keys = new Array[Int](capacity)
    private val bitmaps = new Array[RoaringBitmap](capacity)
    private var count = 0

    def add(key: Int, bitmap: RoaringBitmap): Unit = if (!bitmap.isEmpty) {
      keys(count) = key
      bitmaps(count) = bitmap
      count += 1
    }

    def result(): (Array[Int], Array[RoaringBitmap]) = (keys.take(count), bitmaps.take(count))
  }
}
