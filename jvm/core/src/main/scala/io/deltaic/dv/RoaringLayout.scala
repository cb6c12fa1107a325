package io.deltaic.dv

import java.nio.ByteBuffer

/**
 * Checks the bytes of one 32-bit Roaring bitmap, container by container, before they are decoded
 * (RoaringFormatSpec, "Serialized 32-bit bitmap"):
 *
 * {{{
 * cookie     int32   12346: no runs, then the number of containers as int32
 *                    12347 in the lower half: the upper half is the number of containers - 1,
 *                    then one bit for each container: is it made of runs?
 * header     (key uint16, cardinality - 1 uint16) for each container, by ascending key
 * offsets    int32 for each container, unless there are runs and fewer than four containers
 * containers array  (cardinality <= 4096): cardinality x uint16, ascending
 *            bitset (cardinality >  4096): 8192 bytes
 *            runs:  uint16 number of runs, then (start uint16, length - 1 uint16) for each
 * }}}
 *
 * The Roaring library trusts its input: rows out of order, or a count that does not match, would
 * make it return wrong rows without an error. An inline vector has no checksum, so only this
 * validation prevents wrong query results from a damaged log. Two things are not checked, because
 * no reader uses them: the offsets, and the cardinality in the header of a container of runs.
 */
private[dv] object RoaringLayout {

  private val NoRunCookie = 12346
  private val RunCookie = 12347
  private val MaxContainers = 1 << 16
  private val NoOffsetContainers = 4
  private val MaxArrayCardinality = 4096
  private val BitsetBytes = 8192

  /**
   * The position after the bitmap that starts at `start`.
   *
   * @throws MalformedBitmapException if no complete, well-formed bitmap starts there
   */
  def check(in: ByteBuffer, start: Int): Int = {
    val cookie = in.getInt(need(in, start, 4))
    if ((cookie & 0xffff) == RunCookie) {
      val containers = (cookie >>> 16) + 1
      val runFlags = start + 4
      val header = runFlags + (containers + 7) / 8
      checkContainers(in, header, containers, runFlags)
    } else if (cookie == NoRunCookie) {
      val containers = in.getInt(need(in, start + 4, 4))
      if (containers < 0 || containers > MaxContainers) {
        throw new MalformedBitmapException(s"a bucket claims to have $containers containers")
      }
      checkContainers(in, start + 8, containers, runFlags = -1)
    } else throw new MalformedBitmapException(s"a bucket starts with unknown cookie $cookie")
  }

  /** @param runFlags where the flags of containers made of runs start, -1 if there are none */
  private def checkContainers(in: ByteBuffer, header: Int, containers: Int, runFlags: Int): Int = {
    val hasOffsets = runFlags < 0 || containers >= NoOffsetContainers
    need(in, header, containers * (if (hasOffsets) 8 else 4))
    var at = header + containers * (if (hasOffsets) 8 else 4)
    var lastKey = -1
    var i = 0
    while (i < containers) {
      val key = uint16(in, header + 4 * i)
      val cardinality = uint16(in, header + 4 * i + 2) + 1
      if (key <= lastKey) {
        throw new MalformedBitmapException(s"container $key follows container $lastKey")
      }
      lastKey = key
      val isRuns = runFlags >= 0 && (in.get(runFlags + i / 8) >> (i % 8) & 1) != 0
      at =
        if (isRuns) checkRuns(in, at)
        else if (cardinality <= MaxArrayCardinality) checkArray(in, at, cardinality)
        else checkBitset(in, at, cardinality)
      i += 1
    }
    at
  }

  private def checkArray(in: ByteBuffer, start: Int, cardinality: Int): Int = {
    val end = need(in, start, 2 * cardinality) + 2 * cardinality
    var last = -1
    var at = start
    while (at < end) {
      val row = uint16(in, at)
      if (row <= last) throw new MalformedBitmapException("the rows of a container do not ascend")
      last = row
      at += 2
    }
    end
  }

  private def checkBitset(in: ByteBuffer, start: Int, cardinality: Int): Int = {
    val end = need(in, start, BitsetBytes) + BitsetBytes
    var found = 0
    var at = start
    while (at < end) {
      found += java.lang.Long.bitCount(in.getLong(at))
      at += 8
    }
    if (found != cardinality) {
      throw new MalformedBitmapException(
        s"a container of $found rows claims to have $cardinality rows"
      )
    }
    end
  }

  private def checkRuns(in: ByteBuffer, start: Int): Int = {
    val runs = uint16(in, need(in, start, 2))
    if (runs == 0) throw new MalformedBitmapException("a container has no runs")
    val end = need(in, start + 2, 4 * runs) + 4 * runs
    var last = -1
    var at = start + 2
    while (at < end) {
      val first = uint16(in, at)
      if (first <= last) throw new MalformedBitmapException("the runs of a container do not ascend")
      last = first + uint16(in, at + 2)
      if (last > 0xffff) throw new MalformedBitmapException("a run reaches beyond its container")
      at += 4
    }
    end
  }

  /** Returns `at` if at least `bytes` bytes follow it. */
  private def need(in: ByteBuffer, at: Int, bytes: Int): Int =
    if (bytes <= in.limit() - at) at
    else throw new MalformedBitmapException("a bucket ends before its last container")

  private def uint16(in: ByteBuffer, at: Int): Int = in.getShort(at) & 0xffff
}
