package io.deltaic.spark.curve

class SpaceFillingCurveSuite extends munit.FunSuite {

  private val grids = for {
    axes <- 1 to 4
    bits <- 1 to 4
    if axes * bits <= 12
  } yield (axes, bits)

  private def cells(axes: Int, bits: Int): Seq[Seq[Int]] =
    (0 until axes).foldLeft(Seq(Seq.empty[Int])) { (cells, _) =>
      cells.flatMap(cell => (0 until (1 << bits)).map(cell :+ _))
    }

  for {
    (axes, bits) <- grids
    curve <- Seq(ZOrderCurve, HilbertCurve)
  } test(s"$curve visits each of the cells of $axes axes with $bits bits once") {
    val positions = cells(axes, bits).map(cell => curve.position(cell.toArray, bits))
    assertEquals(positions.sorted, (0L until (1L << (axes * bits))).toSeq)
  }

  for ((axes, bits) <- grids)
    test(
      s"cells that follow each other on Hilbert's curve are neighbours: $axes axes, $bits bits"
    ) {
      val inOrder = cells(axes, bits).sortBy(cell => HilbertCurve.position(cell.toArray, bits))
      val distances = inOrder.zip(inOrder.tail).map { case (one, next) =>
        one.zip(next).map { case (a, b) => (a - b).abs }.sum
      }
      assertEquals(distances.distinct, Seq(1))
    }

  test("Hilbert's curve through four cells is the one of the paper") {
    val inOrder = cells(2, 1).sortBy(cell => HilbertCurve.position(cell.toArray, 1))
    assertEquals(inOrder, Seq(Seq(0, 0), Seq(0, 1), Seq(1, 1), Seq(1, 0)))
  }

  test("Z-order takes bits in turns, the highest first") {
    assertEquals(ZOrderCurve.position(Array(5, 3), 3), 39L) // 101 and 011: 10 01 11
    assertEquals(ZOrderCurve.position(Array(1, 0, 1), 1), 5L)
  }

  test("positions of 63 bits are positive") {
    val largest = Array.fill(3)((1 << 21) - 1)
    assertEquals(ZOrderCurve.position(largest, 21), Long.MaxValue)
    assert(HilbertCurve.position(largest, 21) >= 0)
  }
}
