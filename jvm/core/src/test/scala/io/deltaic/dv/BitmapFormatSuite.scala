package io.deltaic.dv

import java.io.{ByteArrayOutputStream, DataOutputStream}
import java.nio.{ByteBuffer, ByteOrder}

import munit.ScalaCheckSuite
import org.roaringbitmap.RoaringBitmap
import org.roaringbitmap.longlong.Roaring64NavigableMap
import org.scalacheck.Gen
import org.scalacheck.Prop.forAll

import io.deltaic.dv.RowSets.{rowsOf, vector}

class BitmapFormatSuite extends ScalaCheckSuite {

  override def scalaCheckTestParameters: org.scalacheck.Test.Parameters =
    super.scalaCheckTestParameters.withMinSuccessfulTests(100)

  private val Magic = 1681511377

  private def littleEndian(sizeBytes: Int)(fill: ByteBuffer => Unit): Array[Byte] = {
    val buffer = ByteBuffer.allocate(sizeBytes).order(ByteOrder.LITTLE_ENDIAN)
    fill(buffer)
    buffer.array().take(buffer.position())
  }

  private def bitmap(rows: Int*): Array[Byte] = {
    val bits = RoaringBitmap.bitmapOf(rows: _*)
    littleEndian(bits.serializedSizeInBytes)(bits.serialize)
  }

  private def buckets(count: Long, parts: (Int, Array[Byte])*): Array[Byte] =
    littleEndian(100000) { out =>
      out.putInt(Magic).putLong(count)
      parts.foreach { case (key, bytes) => out.putInt(key).put(bytes) }
    }

  /** One bucket whose 32-bit bitmap is made of these 16-bit words, after the given cookie. */
  private def container(cookie: Int, words: Int*): Array[Byte] =
    buckets(
      1,
      0 -> littleEndian(4 + 2 * words.length) { out =>
        out.putInt(cookie)
        words.foreach(word => out.putShort(word.toShort))
      }
    )

  private def refusal(bytes: Array[Byte]): BitmapFormatException =
    try fail(s"${DeletionVector.deserialize(bytes)} was read")
    catch { case refused: BitmapFormatException => refused }

  // Protocol: deletion-vector-format-1, dv-deletion-vector-format-1, dv-high-level-anatomy-of-a-deletion-vector-1
  property("the bytes are the magic number and Roaring's portable 64-bit format") {
    forAll(RowSets.any) { rows =>
      val peer = new Roaring64NavigableMap()
      rows.foreach(row => peer.addLong(row))
      peer.runOptimize()
      val bytes = new ByteArrayOutputStream()
      bytes.write(littleEndian(4)(_.putInt(Magic)))
      peer.serializePortable(new DataOutputStream(bytes))
      assertEquals(vector(rows).serialize().toSeq, bytes.toByteArray.toSeq)
      assertEquals(rowsOf(DeletionVector.deserialize(bytes.toByteArray)), rows.toSeq.sorted)
    }
  }

  test("empty buckets, which some writers keep, are read and dropped") {
    val read = DeletionVector.deserialize(
      buckets(3, 0 -> bitmap(), 1 -> bitmap(5), 2 -> bitmap())
    )
    assertEquals(rowsOf(read), Seq(1L << 32 | 5))
    assertEquals(read, vector(Seq(1L << 32 | 5)))
  }

  test("many sparse buckets are read without allocating those between them") {
    val read = DeletionVector.deserialize(buckets(2, 7 -> bitmap(1), Int.MaxValue -> bitmap(2)))
    assertEquals(rowsOf(read), Seq(7L << 32 | 1, Int.MaxValue.toLong << 32 | 2))
  }

  // Protocol: deletion-vector-format-1, dv-deletion-vector-format-1
  test("an unknown magic number is distinguished from damage") {
    val bytes = vector(Seq(1L)).serialize()
    bytes(0) = (bytes(0) + 1).toByte
    val error = intercept[UnknownBitmapFormatException](DeletionVector.deserialize(bytes))
    assert(error.getMessage.contains("1681511378"), error.getMessage)
  }

  /** The older layout, in which a bucket's key is its index. */
  private def old(order: ByteOrder, count: Int, parts: (Int, Array[Byte])*): Array[Byte] =
    littleEndian(100000) { out =>
      out.order(order).putInt(Magic - 1).putInt(count)
      parts.foreach { case (size, bytes) => out.putInt(size).put(bytes) }
    }

  Seq(ByteOrder.LITTLE_ENDIAN, ByteOrder.BIG_ENDIAN).foreach { order =>
    test(s"the older layout is read, with numbers in $order") {
      val bytes = old(order, 3, 20 -> bitmap(1, 7), 8 -> bitmap(), 18 -> bitmap(5))
      assertEquals(rowsOf(DeletionVector.deserialize(bytes)), Seq(1L, 7L, 2L << 32 | 5))
    }

    test(s"the older layout with wrong sizes is refused, with numbers in $order") {
      Seq(
        old(order, 2, 20 -> bitmap(1, 7)),
        old(order, -1, 20 -> bitmap(1, 7)),
        old(order, Int.MaxValue, 20 -> bitmap(1, 7)),
        old(order, 1, 19 -> bitmap(1, 7)),
        old(order, 1, -20 -> bitmap(1, 7)),
        old(order, 1, 20 -> bitmap(1, 7).dropRight(1)),
        old(order, 1).take(6)
      ).foreach(refusal)
    }
  }

  test("zero bytes behind the last bucket are padding, others are damage") {
    val bytes = vector(Seq(1L, 7L)).serialize()
    assertEquals(rowsOf(DeletionVector.deserialize(bytes ++ new Array[Byte](4))), Seq(1L, 7L))
    refusal(bytes ++ Array[Byte](0, 0, 1, 0))
  }

  private val oneRunContainer = 12347
  Seq(
    ("nothing at all", Array.emptyByteArray, "end before"),
    ("a truncated header", buckets(1).take(11), "end before"),
    ("more buckets than bytes", buckets(2, 0 -> bitmap(1)), "do not fit"),
    ("2^63 - 1 buckets", buckets(Long.MaxValue, 0 -> bitmap(1)), "do not fit"),
    ("a negative number of buckets", buckets(-1, 0 -> bitmap(1)), "do not fit"),
    ("fewer buckets than there are", buckets(1, 0 -> bitmap(1), 1 -> bitmap(1)), "bytes follow"),
    ("a negative key", buckets(1, -2 -> bitmap(1)), "must ascend"),
    ("the same key twice", buckets(2, 1 -> bitmap(1), 1 -> bitmap(2)), "must ascend"),
    ("descending keys", buckets(2, 1 -> bitmap(1), 0 -> bitmap(2)), "must ascend"),
    ("an unknown cookie", container(4711, 0, 0), "unknown cookie 4711"),
    ("a negative number of containers", container(12346, 0xffff, 0xffff), "-1 containers"),
    ("65537 containers", container(12346, 1, 1), "65537 containers"),
    ("truncated containers", container(12346, 9, 0), "ends before"),
    ("an array that is cut off", container(12346, 1, 0, 0, 4, 16, 0, 7, 8), "ends before"),
    ("an array that descends", container(12346, 1, 0, 0, 1, 16, 0, 8, 7), "do not ascend"),
    ("an array with a row twice", container(12346, 1, 0, 0, 1, 16, 0, 8, 8), "do not ascend"),
    ("a bitset that is cut off", container(12346, 1, 0, 0, 4096, 16, 0, 8), "ends before"),
    (
      "a bitset of another cardinality",
      container(12346, Seq(1, 0, 0, 4096, 16, 0) ++ Seq.fill(4096)(1): _*),
      "4096 rows claims to have 4097"
    ),
    (
      "containers that descend",
      container(12346, 2, 0, 1, 0, 0, 0, 24, 0, 26, 0, 5, 5),
      "container 0 follows container 1"
    )
  ).foreach { case (what, bytes, reason) =>
    test(s"$what: refused") {
      val error = refusal(bytes)
      assert(error.getMessage.contains(reason), error.getMessage)
    }
  }

  /** One container of runs: flag byte, header (key 0, cardinality 1), number of runs, runs. */
  private def runContainer(words: Int*): Array[Byte] = buckets(
    1,
    0 -> littleEndian(64) { out =>
      out.putInt(oneRunContainer).put(1: Byte).putShort(0).putShort(0)
      words.foreach(word => out.putShort(word.toShort))
    }
  )

  test("runs are read, also when they touch") {
    assertEquals(
      rowsOf(DeletionVector.deserialize(runContainer(2, 3, 1, 5, 0))),
      Seq(3L, 4L, 5L)
    )
  }

  Seq(
    ("no runs", runContainer(0), "no runs"),
    ("runs that are cut off", runContainer(2, 3, 1), "ends before"),
    ("runs that descend", runContainer(2, 9, 0, 3, 0), "do not ascend"),
    ("runs that overlap", runContainer(2, 3, 4, 5, 1), "do not ascend"),
    ("a run beyond its container", runContainer(1, 65535, 1), "beyond its container")
  ).foreach { case (what, bytes, reason) =>
    test(s"$what: refused") {
      val error = refusal(bytes)
      assert(error.getMessage.contains(reason), error.getMessage)
    }
  }

  property("a vector that is truncated anywhere is refused") {
    forAll(RowSets.any, Gen.choose(0.0, 1.0)) { (rows: Set[Long], share: Double) =>
      val bytes = vector(rows).serialize()
      refusal(bytes.take(math.min(bytes.length - 1, (bytes.length * share).toInt)))
      ()
    }
  }

  property("with any bytes changed, a vector is refused or is a consistent set of rows") {
    forAll(RowSets.any, Gen.long) { (rows: Set[Long], seed: Long) =>
      val random = new scala.util.Random(seed)
      val bytes = vector(rows).serialize()
      (0 to random.nextInt(4)).foreach(_ => bytes(damaged(random, bytes)) = random.nextInt().toByte)
      try {
        val read = DeletionVector.deserialize(bytes)
        val found = rowsOf(read)
        assertEquals(found.size.toLong, read.cardinality)
        assert(found.iterator.sliding(2).forall(pair => pair.size < 2 || pair.head < pair(1)))
        assert(found.take(2000).forall(read.contains))
      } catch { case _: BitmapFormatException => () }
    }
  }

  /** Half of the time in the headers, where most of what can go wrong is. */
  private def damaged(random: scala.util.Random, bytes: Array[Byte]): Int =
    random.nextInt(if (random.nextBoolean()) math.min(60, bytes.length) else bytes.length)

  property("random bytes behind a valid start are refused, or read, but never break anything") {
    val noise = Gen.choose(0, 3000).flatMap { n =>
      Gen.containerOfN[Array, Byte](n, Gen.choose(Byte.MinValue, Byte.MaxValue))
    }
    val starts = Gen.oneOf(
      Array.emptyByteArray,
      buckets(1),
      buckets(1).take(4),
      old(ByteOrder.LITTLE_ENDIAN, 1, 20 -> Array.emptyByteArray),
      old(ByteOrder.BIG_ENDIAN, 2),
      buckets(1, 0 -> littleEndian(8)(_.putInt(12346).putInt(3))),
      buckets(1, 0 -> littleEndian(4)(_.putInt(12347))),
      buckets(1, 0 -> littleEndian(4)(_.putInt(12347 | 6 << 16)))
    )
    forAll(starts, noise) { (start: Array[Byte], rest: Array[Byte]) =>
      try rowsOf(DeletionVector.deserialize(start ++ rest)): Unit
      catch { case _: BitmapFormatException => () }
    }
  }
}
