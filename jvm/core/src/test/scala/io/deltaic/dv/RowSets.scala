package io.deltaic.dv

import org.scalacheck.Gen

/** Sets of rows in typical shapes of deletes, which use every kind of Roaring container. */
object RowSets {

  private val bucketStarts: Gen[Long] =
    Gen.frequency(
      6 -> 0L,
      1 -> (1L << 31),
      1 -> (1L << 32),
      1 -> (5L << 32),
      1 -> (Int.MaxValue.toLong << 32)
    )

  private val scattered: Gen[Set[Long]] =
    Gen.choose(0, 60).flatMap(n => Gen.containerOfN[Set, Long](n, Gen.choose(0L, 400000L)))

  private val dense: Gen[Set[Long]] = for {
    seed <- Gen.long
    start <- Gen.choose(0L, 200000L)
  } yield {
    val random = new scala.util.Random(seed)
    Iterator.range(0, 12000).filter(_ => random.nextBoolean()).map(_ + start).toSet
  }

  private val runs: Gen[Set[Long]] = for {
    count <- Gen.choose(1, 6)
    starts <- Gen.listOfN(count, Gen.choose(0L, 300000L))
    length <- Gen.choose(1, 5000)
  } yield starts.iterator.flatMap(start => Iterator.range(0, length).map(_ + start)).toSet

  val any: Gen[Set[Long]] = for {
    parts <- Gen.choose(1, 3)
    sets <- Gen.listOfN(
      parts,
      for {
        start <- bucketStarts
        rows <- Gen.frequency(4 -> scattered, 1 -> dense, 2 -> runs)
      } yield rows.map(_ + start)
    )
  } yield sets.flatten.toSet

  def vector(rows: Iterable[Long]): DeletionVector = DeletionVector.of(rows.toSeq: _*)

  def rowsOf(vector: DeletionVector): Seq[Long] = {
    val rows = Seq.newBuilder[Long]
    vector.forEach(row => rows += row)
    rows.result()
  }
}
