package io.deltaic.dv

import java.util.TreeSet

import munit.ScalaCheckSuite
import org.scalacheck.Gen
import org.scalacheck.Prop.forAll

import io.deltaic.dv.DeletionVectorCursor.End
import io.deltaic.dv.RowSets.vector

class DeletionVectorCursorSuite extends ScalaCheckSuite {

  override def scalaCheckTestParameters: org.scalacheck.Test.Parameters =
    super.scalaCheckTestParameters.withMinSuccessfulTests(100)

  /** A brute-force seek over a sorted set. */
  private final class Expected(rows: Set[Long]) {
    private val sorted = new TreeSet[java.lang.Long]()
    rows.foreach(row => sorted.add(row))
    def seek(row: Long): Long = Option(sorted.ceiling(row)).fold(End)(_.longValue)
  }

  /** Rows around those of the vector, so that hits, near misses and gaps are all sought. */
  private def probes(rows: Set[Long], random: scala.util.Random): Seq[Long] = {
    val near = rows.toSeq.flatMap(row => Seq(row - 1, row, row + 1, row + random.nextInt(70000)))
    val edges = Seq(0L, 65535L, 65536L, (1L << 31) - 1, 1L << 31, 1L << 32, End - 1, End)
    (random.shuffle(near).take(3000) ++ edges).filter(_ >= 0)
  }

  property("ascending rows: as brute force") {
    forAll(RowSets.any, Gen.long) { (rows: Set[Long], seed: Long) =>
      val expected = new Expected(rows)
      val cursor = vector(rows).cursor()
      probes(rows, new scala.util.Random(seed)).sorted.foreach { row =>
        assertEquals(cursor.seek(row), expected.seek(row), s"seek($row)")
      }
    }
  }

  property("rows in any order: as brute force") {
    forAll(RowSets.any, Gen.long) { (rows: Set[Long], seed: Long) =>
      val expected = new Expected(rows)
      val cursor = vector(rows).cursor()
      probes(rows, new scala.util.Random(seed)).take(500).foreach { row =>
        assertEquals(cursor.seek(row), expected.seek(row), s"seek($row)")
      }
    }
  }

  property("every row of a split that starts anywhere: the filter's loop as brute force") {
    forAll(RowSets.any, Gen.choose(0L, 300000L)) { (rows: Set[Long], start: Long) =>
      val cursor = vector(rows).cursor()
      var next = -1L
      (start until start + 10000).foreach { row =>
        val kept = row < next || row != next && { next = cursor.seek(row); row < next }
        assertEquals(kept, !rows(row), s"row $row")
      }
    }
  }

  test("vectors that were not optimized can be iterated") {
    val rows = (0L until 20000L).filter(_ % 7 != 3) ++ (300000L until 300010L)
    val built = new DeletionVector()
    rows.foreach(built.add)
    val expected = new Expected(rows.toSet)
    val cursor = built.cursor()
    (0L until 310000L).foreach(row => assertEquals(cursor.seek(row), expected.seek(row)))
  }

  test("seeking the same row again gives the same result, and End stays End") {
    val cursor = vector(Seq(3L, 8L)).cursor()
    assertEquals(
      Seq(4L, 4L, 8L, 8L, 9L, 9L, End, 8L, 0L).map(cursor.seek),
      Seq(8L, 8L, 8L, 8L, End, End, End, 8L, 3L)
    )
  }

  test("rows in the upper half of a bucket are not treated as negative") {
    val rows = Seq(1L, (1L << 31) - 1, 1L << 31, (1L << 32) - 1, 1L << 32)
    val cursor = vector(rows).cursor()
    rows.foreach(row => assertEquals(cursor.seek(row), row))
    assertEquals(cursor.seek((1L << 32) + 1), End)
  }

  test("a negative row is before every row") {
    val cursor = vector(Seq(0L, 5L)).cursor()
    assertEquals(Seq(-7L, 3L, -1L).map(cursor.seek), Seq(0L, 5L, 0L))
  }

  test("cursors over one vector do not disturb each other") {
    val shared = vector(0L until 10000L by 2)
    val (left, right) = (shared.cursor(), shared.cursor())
    assertEquals(left.seek(9001), 9002L)
    assertEquals(right.seek(1), 2L)
    assertEquals(left.seek(9003), 9004L)
  }
}
