package io.deltaic.dv

import java.util.concurrent.{Callable, Executors}

import munit.ScalaCheckSuite
import org.scalacheck.Gen
import org.scalacheck.Prop.forAll

import io.deltaic.dv.RowSets.{rowsOf, vector}

class DeletionVectorSuite extends ScalaCheckSuite {

  override def scalaCheckTestParameters: org.scalacheck.Test.Parameters =
    super.scalaCheckTestParameters.withMinSuccessfulTests(60)

  test("an empty vector has no rows and survives serialization") {
    val empty = DeletionVector.deserialize(new DeletionVector().serialize())
    assert(empty.isEmpty)
    assertEquals(empty.cardinality, 0L)
    assertEquals(empty.cursor().seek(0), DeletionVectorCursor.End)
    empty.add(7)
    assertEquals(rowsOf(empty), Seq(7L))
  }

  test("a negative row is refused") {
    intercept[IllegalArgumentException](new DeletionVector().add(-1))
  }

  property("rows are what was added, in any order, and ascend") {
    forAll(RowSets.any, Gen.long) { (rows: Set[Long], seed: Long) =>
      val built = new DeletionVector()
      new scala.util.Random(seed).shuffle(rows.toSeq).foreach(built.add)
      assertEquals(built.cardinality, rows.size.toLong)
      assertEquals(built.isEmpty, rows.isEmpty)
      assertEquals(rowsOf(built), rows.toSeq.sorted)
      val probes = rows.iterator.flatMap(row => Seq(row - 1, row, row + 1)).filter(_ >= 0)
      assert(probes.forall(row => built.contains(row) == rows(row)))
    }
  }

  property("serialization keeps the rows and has the promised size") {
    forAll(RowSets.any) { rows =>
      val original = vector(rows)
      val bytes = original.serialize()
      assertEquals(bytes.length.toLong, original.serializedSizeBytes)
      val copy = DeletionVector.deserialize(bytes)
      assertEquals(copy, original)
      assertEquals(copy.hashCode, original.hashCode)
      assertEquals(rowsOf(copy), rows.toSeq.sorted)
      assertEquals(copy.serialize().toSeq, bytes.toSeq)
    }
  }

  property("or is union, andNot is difference, and the other vector stays as it is") {
    forAll(RowSets.any, RowSets.any) { (left: Set[Long], right: Set[Long]) =>
      val other = vector(right)
      val union = vector(left)
      union.or(other)
      assertEquals(rowsOf(union), (left ++ right).toSeq.sorted)
      val difference = vector(left)
      difference.andNot(other)
      assertEquals(rowsOf(difference), (left -- right).toSeq.sorted)
      assertEquals(difference.isEmpty, (left -- right).isEmpty)
      union.add(1234567)
      assertEquals(rowsOf(other), right.toSeq.sorted)
    }
  }

  property("a copy can be changed without changing the original") {
    forAll(RowSets.any) { rows =>
      val original = vector(rows)
      val copy = original.copy()
      (0L until 100L).foreach(copy.add)
      copy.add(9L << 32)
      assertEquals(rowsOf(original), rows.toSeq.sorted)
      assertEquals(rowsOf(copy), (rows ++ (0L until 100L) + (9L << 32)).toSeq.sorted)
    }
  }

  test("a vector combined with itself: or changes nothing, andNot empties it") {
    val rows = Seq(1L, 5L, 1L << 40)
    val self = vector(rows)
    self.or(self)
    assertEquals(rowsOf(self), rows)
    self.andNot(self)
    assert(self.isEmpty)
    self.add(3)
    assertEquals(rowsOf(self), Seq(3L))
  }

  test("add uses the right bucket after or and andNot") {
    val built = vector(Seq(5L << 32))
    built.add(5L << 32 | 1)
    built.or(vector(Seq(0L, 1L << 32)))
    built.add(5L << 32 | 2)
    built.andNot(vector(Seq(5L << 32, 5L << 32 | 1, 5L << 32 | 2)))
    built.add(5L << 32 | 3)
    assertEquals(rowsOf(built), Seq(0L, 1L << 32, 5L << 32 | 3))
  }

  // Protocol: dv-high-level-anatomy-of-a-deletion-vector-1
  test("clustered deletes serialize to a few bytes, also when added after serialization") {
    val built = vector(0L until 100000L)
    assert(built.serialize().length < 100)
    (100000L until 1000000L).foreach(built.add)
    assert(built.serialize().length < 300)
  }

  test("vectors with the same rows are equal, whatever the types of their containers") {
    val asRuns = vector(10L until 10000L)
    val asBits = new DeletionVector()
    (10L until 10000L).foreach(asBits.add)
    assertEquals(asBits, asRuns)
    assertEquals(asRuns, asBits)
    assertEquals(asBits.hashCode, asRuns.hashCode)
    asBits.add(10000)
    assertNotEquals(asBits, asRuns)
  }

  test("the memory estimate follows the containers") {
    val few = vector(Seq(1L, 2L)).memoryBytes
    val many = vector(0L until 1000000L by 3).memoryBytes
    assert(few < 1000, few.toString)
    assert(many > 120000 && many < 200000, many.toString)
  }

  test("several threads read one vector in parallel") {
    val rows = 0L until 500000L by 3
    val shared = DeletionVector.deserialize(vector(rows).serialize())
    val pool = Executors.newFixedThreadPool(4)
    try {
      val sums = Seq.fill(8)(pool.submit(new Callable[(Long, Int)] {
        def call(): (Long, Int) = {
          var sum = 0L
          shared.forEach(row => sum += row)
          (sum, shared.serialize().length)
        }
      }))
      val expected = (rows.sum, shared.serialize().length)
      sums.foreach(sum => assertEquals(sum.get(), expected))
    } finally pool.shutdown()
  }
}
