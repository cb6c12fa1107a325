package io.deltaic.spark.skipping

import munit.ScalaCheckSuite
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.unsafe.types.UTF8String
import org.scalacheck.Prop.forAllNoShrink
import org.scalacheck.{Gen, Prop, Test => Check}

import io.deltaic.PatientSuite

/** Compares aggregates from the log with brute force over the rows, and checks which statistics are insufficient. */
class FileStatsAggregatorSuite extends ScalaCheckSuite with PatientSuite {
  import RowAggregate._
  import StatsTable._

  override protected def scalaCheckTestParameters: Check.Parameters =
    super.scalaCheckTestParameters.withMinSuccessfulTests(2000)

  private def rows(files: (FileStats, Long)*): FileStatsAggregator =
    new FileStatsAggregator(columns(files.map(_._1): _*), files.indices.toArray, files(_)._2)

  private def one(files: (FileStats, Long)*)(aggregate: RowAggregate): Option[Any] =
    rows(files: _*).aggregate(Nil, Seq(aggregate)).map(_.head.head)

  private def whole(file: FileStats): (FileStats, Long) = file -> 0L
  private def holey(file: FileStats, deleted: Long): (FileStats, Long) =
    file.copy(hasDeletionVector = true) -> deleted
  private def wide(file: FileStats): FileStats =
    file.copy(stats = file.stats.replaceFirst("\\{", "{\"tightBounds\":false,"))

  private val int = col("int")
  private val ten = between("int", "1", "9")
  private val unknown = FileStats(null)

  // Protocol: per-file-statistics-2
  test("deleted rows are not counted, even if bounds are wide") {
    assertEquals(one(whole(ten), holey(wide(ten), 4))(CountRows), Some(16L))
    assertEquals(rows(whole(ten), holey(wide(ten), 4)).total, Some(16L))
    assertEquals(rows(holey(ten, 10)).live(0), Some(0L))
  }

  test("no files have no rows, no values and no extremes") {
    val found = rows().aggregate(Nil, Seq(CountRows, Min(int))).get
    assertEquals(found.map(_.toSeq), Seq(Seq[Any](0L, null)))
    val p = attributes.find(_.name == "p").get
    assert(rows().aggregate(Seq(p), Seq(CountRows)).get.isEmpty)
  }

  test("a file without a record count makes every aggregate unavailable") {
    Seq(CountRows, CountValues(int), Min(int), CountValues(col("p"))).foreach { aggregate =>
      assertEquals(one(whole(ten), whole(unknown))(aggregate), None, aggregate)
      val contradictory = holey(ten, 11)
      assertEquals(one(contradictory)(aggregate), None, aggregate)
    }
    assertEquals(rows(whole(unknown)).live(0), None)
  }

  // Protocol: dv-column-statistics-2, per-file-statistics-3, per-file-statistics-4
  test("values are counted with exact null counts") {
    val three = stats("int", nullCount = Some(3))
    val all = stats("int", nullCount = Some(10))
    assertEquals(one(whole(three), whole(ten))(CountValues(int)), Some(17L))
    assertEquals(one(holey(wide(ten), 2))(CountValues(int)), Some(8L))
    assertEquals(one(holey(wide(all), 2))(CountValues(int)), Some(0L))
    assertEquals(one(holey(three, 2))(CountValues(int)), None)
    assertEquals(one(whole(wide(three)))(CountValues(int)), None)
    assertEquals(one(whole(stats("int", nullCount = None)))(CountValues(int)), None)
    assertEquals(one(whole(stats("int", nullCount = Some(11))))(CountValues(int)), None)
    assertEquals(one(whole(stats("list", nullCount = Some(0))))(CountValues(col("list"))), None)
    assertEquals(
      one(whole(stats("nest.n", nullCount = Some(1))))(CountValues(col("nest.n"))),
      Some(9L)
    )
  }

  test("extremes are those of tight bounds of files without deleted rows") {
    val other = between("int", "-5", "3")
    assertEquals(one(whole(ten), whole(other))(Min(int)), Some(-5))
    assertEquals(one(whole(ten), whole(other))(Max(int)), Some(9))
    assertEquals(one(whole(ten), whole(wide(other)))(Min(int)), None)
    assertEquals(one(whole(ten), holey(other, 1))(Max(int)), None)
    assertEquals(one(whole(ten), whole(stats("int", min = Some("1"))))(Max(int)), None)
  }

  test("files without values, or without rows, do not affect extremes") {
    val allNull = stats("int", nullCount = Some(10))
    val empty = stats("int", numRecords = Some(0))
    assertEquals(one(whole(ten), whole(allNull), whole(empty))(Min(int)), Some(1))
    assertEquals(one(whole(ten), holey(wide(between("int", "-9", "-8")), 10))(Min(int)), Some(1))
    assertEquals(one(whole(allNull))(Min(int)), Some(null))
    assertEquals(one(whole(stats("int", nullCount = Some(9))))(Min(int)), None)
  }

  Seq(
    "float" -> "1.5",
    "double" -> "1.5",
    "string" -> "\"a\"",
    "ts" -> "\"2024-01-01T00:00:00.000Z\"",
    "ntz" -> "\"2024-01-01T00:00:00.000\"",
    "big" -> "1.5",
    "binary" -> "\"a\""
  ).foreach { case (path, bound) =>
    test(s"bounds of type ${col(path).dataType.sql} may be inexact and are not used") {
      assertEquals(one(whole(between(path, bound, bound)))(Min(col(path))), None)
      assertEquals(one(whole(between(path, bound, bound)))(Max(col(path))), None)
    }
  }

  Seq(
    "byte" -> "5",
    "long" -> "9007199254740993",
    "bool" -> "true",
    "date" -> "\"2024-02-29\"",
    "dec" -> "1.50",
    "nest.n" -> "7"
  ).foreach { case (path, bound) =>
    test(s"bounds of type ${col(path).dataType.sql} ($path) are values") {
      val extremes = rows(whole(between(path, bound, bound)))
        .aggregate(Nil, Seq(Min(col(path)), Max(col(path)))).get.head
      val string = bound.stripPrefix("\"").stripSuffix("\"")
      val value = typed(string, col(path).dataType).value
      assertEquals(extremes.toSeq, Seq[Any](value, value))
    }
  }

  test("groups are those of partition values that rows have") {
    def file(p: String, deleted: Long): (FileStats, Long) =
      ten.copy(partitionValues = Map("x_p" -> p), hasDeletionVector = deleted > 0) -> deleted
    val p = attributes.find(_.name == "p").get
    val found = rows(file("a", 0), file("b", 10), file(null, 4), file("a", 3))
      .aggregate(Seq(p), Seq(CountRows, CountValues(p), Max(p)))
    val a = UTF8String.fromString("a")
    val expected = Seq(Seq[Any](a, 17L, 17L, a), Seq[Any](null, 6L, 0L, null))
    assertEquals(found.map(_.map(_.toSeq)), Some(expected))
    assertEquals(rows(file("a", 0)).aggregate(Seq(int.asInstanceOf[Attribute]), Nil), None)
  }

  test("a partition value that cannot be parsed makes the aggregate unavailable") {
    val broken = whole(ten.copy(partitionValues = Map("x_q" -> "no number")))
    val q = attributes.find(_.name == "q").get
    assertEquals(rows(broken).aggregate(Seq(q), Seq(CountRows)), None)
    assertEquals(one(broken)(Min(q)), None)
    assertEquals(one(broken)(CountRows), Some(10L))
  }

  private val aggregate: Gen[RowAggregate] = for {
    column <- Gen.oneOf(RandomFiles.leafPaths ++ Seq("p", "q", "list")).map(col)
    make <- Gen.oneOf[Expression => RowAggregate](
      (_: Expression) => CountRows,
      CountValues(_: Expression),
      Min(_: Expression),
      Max(_: Expression)
    )
  } yield make(column)

  private val groupBy: Gen[Seq[Attribute]] =
    Gen.someOf(attributes.filter(a => a.name == "p" || a.name == "q")).map(_.toSeq)

  private def expectedValue(rows: Seq[InternalRow], aggregate: RowAggregate): Any = {
    def values(column: Expression): Seq[Any] = {
      val bound = BindReferences.bindReference(column, attributes)
      rows.map(bound.eval(_)).filter(_ != null)
    }
    def ordering(column: Expression): Ordering[Any] =
      TypeUtils.getInterpretedOrdering(column.dataType)
    aggregate match {
      case CountRows => rows.size.toLong
      case CountValues(column) => values(column).size.toLong
      case Min(column) => values(column).minOption(ordering(column)).orNull
      case Max(column) => values(column).maxOption(ordering(column)).orNull
    }
  }

  private def bruteForce(
      rows: Seq[InternalRow],
      keys: Seq[Attribute],
      aggregates: Seq[RowAggregate]
  ): Set[Seq[Any]] = {
    val bound = keys.map(BindReferences.bindReference[Expression](_, attributes))
    val groups = rows.groupBy(row => bound.map(_.eval(row)))
    (if (keys.isEmpty) Map(Seq.empty[Any] -> rows) else groups)
      .map { case (key, of) => key ++ aggregates.map(expectedValue(of, _)) }
      .toSet
  }

  private val files: Gen[Seq[RandomFile]] =
    Gen.choose(0, 4).flatMap(Gen.listOfN(_, RandomFiles.file))

  private def answered(
      some: Seq[RandomFile],
      keys: Seq[Attribute],
      aggregates: Seq[RowAggregate]
  ): Option[Set[Seq[Any]]] =
    rows(some.map(f => f.stats -> f.deletedRows.toLong): _*)
      .aggregate(keys, aggregates)
      .map(_.map(_.toSeq).toSet)

  property("available aggregates equal brute force over the rows") {
    forAllNoShrink(files, groupBy, Gen.listOfN(2, aggregate)) { (some, keys, aggregates) =>
      val expected = bruteForce(some.flatMap(_.validRows), keys, aggregates)
      answered(some, keys, aggregates).fold(Prop(true)) { found =>
        Prop(
          found == expected
        ) :| s"$aggregates by $keys of ${some.map(_.stats)}: $found, $expected"
      }
    }
  }

  test("a good part of the aggregates is available") {
    val cases = Gen.zip(files, groupBy, aggregate)
    val outcomes = Gen.listOfN(2000, cases).sample.get.map { case (some, keys, aggregate) =>
      answered(some, keys, Seq(aggregate)).isDefined
    }
    assert(outcomes.count(identity) > 400, s"${outcomes.count(identity)} of ${outcomes.size}")
  }
}
