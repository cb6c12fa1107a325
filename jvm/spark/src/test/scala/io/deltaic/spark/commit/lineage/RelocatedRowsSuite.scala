package io.deltaic.spark.commit.lineage

import scala.util.Random

import io.deltaic.dv.DeletionVector
import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor, RemoveFile}
import io.deltaic.spark.commit.{CommitFiles, LoggedFile}

/** The positions of relocated rows, compared with rows that are copied one by one. */
class RelocatedRowsSuite extends munit.FunSuite {

  private def add(path: String, rows: Long, lineage: Option[Lineage] = None): AddFile =
    LoggedFile(path, rows, dataChange = false).copy(tags = lineage.map(_.tag).toMap)

  private def descriptor(rows: Int): Option[DeletionVectorDescriptor] =
    Option.when(rows > 0)(DeletionVectorDescriptor("u", "somewhere", Some(1), 10, rows.toLong))

  private def moved(removes: Seq[RemoveFile], adds: Seq[AddFile]): RelocatedRows =
    new RelocatedRows(removes.toIndexedSeq, adds, identity, CommitFiles.rowsIn)

  private def rows(vector: DeletionVector): Set[Long] = {
    val found = Set.newBuilder[Long]
    vector.forEach(found += _)
    found.result()
  }

  test("a tag is parsed as it was written") {
    val vectors = Map(3 -> descriptor(4), 4 -> None)
    for (
      lineage <- Seq(
        Lineage(0, 0, Seq(1)),
        Lineage(17, 5, Seq(3, -4, 0, 7)),
        Lineage(3, 0, Seq(9, 9), vectors)
      )
    ) assertEquals(Lineage.of(add("a", 1, Some(lineage))), Some(lineage))
    for (wrong <- Seq("", "[]", "{}", """{"first": 1}""", """{"first": 1, "rows": 3}"""))
      assert(
        Lineage.of(add("a", 1).copy(tags = Map(Lineage.Tag -> wrong)))
          .forall(_.rows.isEmpty),
        wrong
      )
  }

  test("inputs that are left out keep their rows") {
    val lineage = Lineage(10, 5, Seq(3, 0, 4, 6))
    assertEquals(lineage.without(Set(10)), Lineage(10, 0, Seq(-3, 0, 4, 6)))
    assertEquals(lineage.without(Set(9, 11, 12)), Lineage(9, 5, Seq(3, -4, 6)))
    assertEquals(lineage.without(Set.empty).inputs.flatMap(_._1), Seq(10, 11, 12, 13))
  }

  private val seed = sys.props.get("seed").fold(20)(_.toInt)

  test("random inputs, cuts and deletions") {
    for (run <- 0 until 200) {
      val random = new Random(seed * 1000 + run)
      val sizes = Seq.fill(1 + random.nextInt(6))(random.nextInt(30))
      val inputs = sizes.map { size =>
        val deleted = (0L until size.toLong).filter(_ => random.nextInt(4) == 0)
        (size, DeletionVector.of(deleted: _*))
      }
      val live = inputs.zipWithIndex.flatMap { case ((size, vector), input) =>
        (0L until size.toLong).filterNot(vector.contains).map(input -> _)
      }
      val cuts = Seq.fill(random.nextInt(4))(random.nextInt(live.size + 1)).sorted
      val outputs = (0 +: cuts).zip(cuts :+ live.size).map { case (from, to) =>
        live.slice(from, to)
      }.filter(_.nonEmpty)
      val removes = inputs.zipWithIndex.map { case ((size, vector), input) =>
        add(s"input $input", size.toLong).copy(deletionVector =
          descriptor(vector.cardinality.toInt)
        ).remove(1, dataChange = false)
      }
      val adds = outputs.zipWithIndex.map { case (held, output) =>
        val (first, last) = (held.head._1, held.last._1)
        val from = live.takeWhile(_ != held.head).count(_._1 == first)
        val counts = (first to last).map(input => held.count(_._1 == input).toLong)
        add(s"output $output", held.size.toLong, Some(Lineage(first, from.toLong, counts)))
      }
      val to = moved(removes, adds)
      for (((size, vector), input) <- inputs.zipWithIndex if vector.cardinality < size) {
        assert(to.areKnown(s"input $input"), s"run $run")
        val some = (0L until size.toLong).filter(row =>
          !vector.contains(row) && random.nextBoolean()
        )
        for (deleted <- Seq(Some(some), None)) {
          val found = to.positions(
            s"input $input",
            vector,
            deleted.map(rows => DeletionVector.of(rows: _*))
          )
          val expected = outputs.zipWithIndex.map { case (held, output) =>
            s"output $output" -> held.zipWithIndex.collect {
              case ((`input`, row), i) if deleted.forall(_.contains(row)) => i.toLong
            }.toSet
          }.filter(_._2.nonEmpty).toMap
          val positions = found.map { case (add, vector) => add.path -> rows(vector) }
          assertEquals(positions.filter(_._2.nonEmpty), expected, s"run $run, input $input")
        }
      }
    }
  }

  test("lineage that contradicts the log is not used") {
    val input = add("in", 10).remove(1, dataChange = false)
    def isKnown(lineage: Lineage, rows: Long = 10, remove: RemoveFile = input): Boolean =
      moved(Seq(remove), Seq(add("out", rows, Some(lineage)))).areKnown("in")
    assert(isKnown(Lineage(0, 0, Seq(10))))
    assert(!isKnown(Lineage(0, 0, Seq(10)), rows = 11), "rows of the new file")
    assert(!isKnown(Lineage(0, 0, Seq(9)), rows = 9), "rows of the input")
    assert(!isKnown(Lineage(0, 1, Seq(10))), "rows before the first file")
    assert(!isKnown(Lineage(1, 0, Seq(10))), "no such input")
    assert(!isKnown(Lineage(0, 0, Seq(10)), remove = input.copy(dataChange = true)))
    val again = add("in", 10, Some(Lineage(0, 0, Seq(10))))
    assert(!moved(Seq(input), Seq(again)).areKnown("in"), "its vector has changed")
  }
}
