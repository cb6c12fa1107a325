package io.deltaic.maintenance

import java.nio.charset.StandardCharsets.UTF_8

/**
 * The part of a multi-part checkpoint to which a file belongs: the remainder of Spark's partitioning hash (Protocol §
 * Multi-part checkpoint), Murmur3 with seed 42. Spark mixes in the bytes after the last full word one by one, each as a
 * signed number.
 */
private[deltaic] object PartHash {

  /** @param dvId null if the file has none, or if it is not part of the identity */
  def part(path: String, dvId: String, parts: Int): Int =
    Math.floorMod(hash(dvId, hash(path, 42)), parts)

  /** A null does not change the hash. */
  private def hash(text: String, seed: Int): Int =
    if (text == null) seed
    else {
      val bytes = text.getBytes(UTF_8)
      val words = bytes.length / 4 * 4
      var h = seed
      var i = 0
      while (i < words) {
        val word = (bytes(i) & 0xff) | (bytes(i + 1) & 0xff) << 8 | (bytes(i + 2) & 0xff) << 16 |
          bytes(i + 3) << 24
        h = mixed(h, word)
        i += 4
      }
      while (i < bytes.length) {
        h = mixed(h, bytes(i).toInt)
        i += 1
      }
      finished(h ^ bytes.length)
    }

  private def mixed(h: Int, k: Int): Int = {
    val scrambled = Integer.rotateLeft(k * 0xcc9e2d51, 15) * 0x1b873593
    Integer.rotateLeft(h ^ scrambled, 13) * 5 + 0xe6546b64
  }

  private def finished(hash: Int): Int = {
    var h = hash
    h = (h ^ (h >>> 16)) * 0x85ebca6b
    h = (h ^ (h >>> 13)) * 0xc2b2ae35
    h ^ (h >>> 16)
  }
}
