package io.deltaic.dv

import java.nio.{ByteBuffer, ByteOrder}

import org.roaringbitmap.RoaringBitmap

/** The bytes are not a deletion vector. The message says what is wrong with them, for a person. */
private[dv] sealed abstract class BitmapFormatException(message: String, cause: Throwable)
    extends IllegalArgumentException(message, cause)

/** The bytes contradict the format. */
private[dv] final class MalformedBitmapException(message: String, cause: Throwable = null)
    extends BitmapFormatException(message, cause)

/** The bytes start with the mark of another format, maybe of a future one. */
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
 * Nothing that is read is trusted: a bitmap is handed to the Roaring library only after
 * [[RoaringLayout]] has walked it, because the library believes counts and sizes it reads.
 */
private[dv] object BitmapFormat {

  private val Magic = 1681511377
  private val HeaderBytes = 4 + 8
  private val KeyBytes = 4

  /** Key and bitmap of an empty bucket: no bucket is shorter. */
  private val MinBucketBytes = KeyBytes + 8

  /** How many bytes [[write]] makes of these buckets. */
  def sizeBytes(buckets: Array[RoaringBitmap], count: Int): Long = {
    var total = HeaderBytes.toLong
    var i = 0
    while (i < count) {
      total += KeyBytes + buckets(i).serializedSizeInBytes
      i += 1
    }
    total
  }

  /** Writes the first `count` buckets to bytes that are exactly as long as [[sizeBytes]] says. */
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
   * Reads what [[write]] or any other Delta writer wrote, into arrays without empty buckets.
   *
   * @throws BitmapFormatException if the bytes are anything else, whatever they are
   */
  def read(bytes: Array[Byte], start: Int, sizeBytes: Int): (Array[Int], Array[RoaringBitmap]) = {
    val in = ByteBuffer.wrap(bytes, start, sizeBytes).slice().order(ByteOrder.LITTLE_ENDIAN)
    val count = readHeader(in)
    var keys = new Array[Int](count)
    var buckets = new Array[RoaringBitmap](count)
    var kept = 0
    var lastKey = -1
    var i = 0
    while (i < count) {
      val key = readKey(in, lastKey)
      val bucket = readBucket(in)
      if (!bucket.isEmpty) {
        keys(kept) = key
        buckets(kept) = bucket
        kept += 1
      }
      lastKey = key
      i += 1
    }
    if (in.hasRemaining) {
      throw new MalformedBitmapException(s"${in.remaining} bytes follow the last bucket")
    }
    if (kept < count) {
      keys = keys.take(kept)
      buckets = buckets.take(kept)
    }
    (keys, buckets)
  }

  private def readHeader(in: ByteBuffer): Int = {
    if (in.remaining < HeaderBytes) {
      throw new MalformedBitmapException(s"${in.remaining} bytes are too few for a bitmap")
    }
    val magic = in.getInt
    if (magic != Magic) {
      throw new UnknownBitmapFormatException(s"the bitmap's magic number is $magic, not $Magic")
    }
    val count = in.getLong
    if (count < 0 || count > in.remaining / MinBucketBytes) {
      throw new MalformedBitmapException(
        s"$count buckets do not fit into the ${in.remaining} bytes that follow"
      )
    }
    count.toInt
  }

  private def readKey(in: ByteBuffer, lastKey: Int): Int = {
    if (in.remaining < MinBucketBytes) {
      throw new MalformedBitmapException("the bitmap ends before its last bucket")
    }
    val key = in.getInt
    if (key <= lastKey) {
      throw new MalformedBitmapException(
        if (key < 0) s"bucket key $key is negative"
        else s"bucket key $key follows key $lastKey: keys must ascend"
      )
    }
    key
  }

  private def readBucket(in: ByteBuffer): RoaringBitmap = {
    val start = in.position()
    val end = RoaringLayout.check(in, start)
    val bucket = new RoaringBitmap()
    try bucket.deserialize(in.slice(start, end - start).order(ByteOrder.LITTLE_ENDIAN))
    catch {
      case error @ (_: java.io.IOException | _: RuntimeException) =>
        throw new MalformedBitmapException(s"a bucket cannot be decoded: $error", error)
    }
    in.position(end)
    bucket
  }
}
