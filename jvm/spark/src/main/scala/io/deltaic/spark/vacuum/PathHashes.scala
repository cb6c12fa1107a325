package io.deltaic.spark.vacuum

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.unsafe.Platform

/**
 * A set of paths relative to the table, of which only 64-bit hashes are stored: sixteen to thirty-two bytes for each
 * path, so that the paths of millions of files fit in memory. Two paths may have the same hash. Such a file counts as
 * used and stays, which is the safe side.
 */
private[vacuum] final class PathHashes extends Serializable {
  import PathHashes._

  /** Open addressing; 0 is a free slot. */
  private var slots = new Array[Long](1024)
  private var count = 0

  /** @return whether it is new */
  def add(path: String): Boolean = addHash(of(path))

  def addHash(hash: Long): Boolean = {
    if (count > slots.length / 2) grow()
    val isNew = insert(slots, hash)
    if (isNew) count += 1
    isNew
  }

  def contains(path: String): Boolean = slots(slotOf(slots, of(path))) != 0

  def size: Int = count

  private def grow(): Unit = {
    val larger = new Array[Long](math.multiplyExact(slots.length, 2))
    slots.foreach(hash => if (hash != 0) insert(larger, hash))
    slots = larger
  }
}

private[vacuum] object PathHashes {
  private val Seed = 42L

  /** Not 0. */
  def of(path: String): Long = {
    val bytes = path.getBytes(UTF_8)
    val hash = XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, Seed)
    if (hash == 0) 1L else hash
  }

  private def insert(slots: Array[Long], hash: Long): Boolean = {
    val slot = slotOf(slots, hash)
    val isNew = slots(slot) == 0
    slots(slot) = hash
    isNew
  }

  /** The slot of the hash, or the free slot where it belongs. */
  private def slotOf(slots: Array[Long], hash: Long): Int = {
    var slot = (hash ^ (hash >>> 32)).toInt & (slots.length - 1)
    while (slots(slot) != 0 && slots(slot) != hash) slot = (slot + 1) & (slots.length - 1)
    slot
  }
}
