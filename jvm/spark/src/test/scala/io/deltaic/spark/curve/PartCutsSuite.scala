package io.deltaic.spark.curve

import scala.util.Random

class PartCutsSuite extends munit.FunSuite {

  for {
    numParts <- Seq(1, 2, 7, 50)
    distinct <- Seq(1, 3, 40, 100000)
  } test(s"$numParts parts of rows with $distinct positions have about the same size") {
    val random = new Random(numParts)
    val positions = IndexedSeq.fill(20000)(random.nextInt(distinct).toLong)
    val cuts = PartCuts.of(positions.sorted, numParts, 100)
    val parts = positions.zipWithIndex.map { case (p, row) => cuts.part(p, row.toLong) -> p }
    val sizes = parts.groupBy(_._1).map { case (part, rows) => part -> rows.size }
    assertEquals(sizes.keySet, (100 until 100 + numParts).toSet)
    assert(sizes.values.max <= 2 * positions.size / numParts, sizes)
    // Parts follow each other.
    val ranges = parts.groupMap(_._1)(_._2).toSeq.sortBy(_._1).map(_._2)
    ranges.zip(ranges.drop(1)).foreach { case (one, next) => assert(one.max <= next.min) }
  }

  test("without a sample, all rows are in the first part") {
    assertEquals(PartCuts.of(IndexedSeq.empty, 4, 7).part(123, 1), 7)
  }
}
