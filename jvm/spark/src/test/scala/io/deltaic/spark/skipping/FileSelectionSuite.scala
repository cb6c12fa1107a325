package io.deltaic.spark.skipping

import java.time.ZoneOffset
import java.util.concurrent.atomic.AtomicInteger
import java.util.concurrent.{CountDownLatch, Executors, TimeUnit}

import scala.concurrent.duration.DurationInt
import scala.concurrent.{Await, ExecutionContext, Future}

import munit.FunSuite
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation
import org.apache.spark.sql.types._

import io.deltaic.TableBuilder
import io.deltaic.replay.Snapshot
import io.deltaic.spark.schema.SkippingSchema

class FileSelectionSuite extends FunSuite {
  import StatsTable._

  private def file(p: String, q: String, min: Int = 0, max: Int = 9): FileStats =
    between("int", min.toString, max.toString)
      .copy(partitionValues = Map("x_p" -> p, "x_q" -> q))

  private val table = columns(file("a", "1"), file("b", "2"), file(null, "3"), file("", null))
  private def cast(path: String, to: DataType): Expression =
    Cast(col(path), to, Some("UTC"), EvalMode.ANSI)

  private def check(name: String, filter: => Expression)(kept: Int*)(implicit
      loc: munit.Location
  ): Unit = test(s"partition values: $name")(assertEquals(select(table, filter), kept))

  check("equal", EqualTo(col("p"), lit("a")))(0)
  check("not equal leaves nulls out", Not(EqualTo(col("p"), lit("a"))))(1)
  check("is null, for an empty string too", IsNull(col("p")))(2, 3)
  check("null-safe equal", EqualNullSafe(col("q"), Literal(null, IntegerType)))(3)
  check(
    "any expression",
    EqualTo(Concat(Seq(Upper(col("p")), cast("q", StringType))), lit("B2"))
  )(1)
  check("two partition columns", GreaterThan(Add(col("q"), lit(1)), Length(col("p"))))(0, 1)
  check("with a column in OR", Or(EqualTo(col("p"), lit("a")), LessThan(col("int"), lit(0))))(0)
  check(
    "with a column in NOT OR",
    Not(Or(EqualTo(col("p"), lit("a")), LessThan(col("int"), lit(20))))
  )()
  check(
    "a null condition in OR",
    Or(EqualTo(col("p"), Literal(null, StringType)), EqualTo(col("q"), lit(3)))
  )(
    2
  )
  check("a case expression", CaseWhen(Seq(IsNull(col("p")) -> Literal(true)), Literal(false)))(2, 3)
  check(
    "an error of one file does not skip it",
    EqualTo(Divide(lit(4.0), cast("q", DoubleType)), lit(4.0))
  )(0)
  check("a cast that fails does not skip the file", EqualTo(cast("p", IntegerType), lit(1)))(0, 1)
  check(
    "a value the filter rules out first cannot fail",
    And(EqualTo(cast("p", IntegerType), lit(1)), EqualTo(col("q"), lit(2)))
  )(
    1
  )

  Seq[(DataType, String, String)](
    (BooleanType, "false", "true"),
    (ByteType, "-7", "7"),
    (ShortType, "-7", "700"),
    (IntegerType, "9", "10"),
    (LongType, "9", "9007199254740993"),
    (FloatType, "-0.5", "1.5"),
    (DoubleType, "-Infinity", "NaN"),
    (DecimalType(10, 2), "9.99", "10.00"),
    (DecimalType(38, 10), "9.99", "12345678901234567890.5"),
    (StringType, "B", "a"),
    (BinaryType, "a", "b"),
    (DateType, "1969-12-31", "2024-02-29"),
    (TimestampType, "1969-12-31 23:59:59.999999Z", "2024-02-29 00:00:00.000001Z"),
    (TimestampNTZType, "1969-12-31 23:59:59.999999", "2024-02-29 00:00:00.000001")
  ).foreach { case (dataType, less, more) =>
    test(s"partition values of type ${dataType.sql}") {
      val part = AttributeReference("part", dataType)()
      val files = Seq(less, more, null).map(v => FileStats("{}", Map("part" -> v)))
      val schema = new SkippingSchema(new StructType().add("part", dataType), Seq("part"))
      val columns = new FileStatsColumns(ListedFileStats(files.toIndexedSeq), schema, parser)
      val (low, high) = (typed(less, dataType), typed(more, dataType))
      def selected(filter: Expression) = FileSelection.select(columns, Seq(filter)).files.toSeq
      assertEquals(selected(EqualTo(part, low)), Seq(0))
      assertEquals(selected(EqualTo(high, part)), Seq(1))
      assertEquals(selected(LessThan(part, high)), Seq(0))
      assertEquals(selected(GreaterThan(part, low)), Seq(1))
      assertEquals(selected(LessThanOrEqual(low, part)), Seq(0, 1))
      assertEquals(selected(GreaterThanOrEqual(low, part)), Seq(0))
      assertEquals(selected(In(part, Seq(high, low))), Seq(0, 1))
      assertEquals(selected(Not(In(part, Seq(high)))), Seq(0))
      assertEquals(selected(Not(EqualTo(part, low))), Seq(1))
      assertEquals(selected(EqualNullSafe(part, Literal(null, dataType))), Seq(2))
      assertEquals(selected(Not(EqualNullSafe(part, low))), Seq(1, 2))
      assertEquals(selected(IsNull(part)), Seq(2))
      assertEquals(selected(IsNotNull(part)), Seq(0, 1))
      assertEquals(selected(EqualTo(Coalesce(Seq(part, low)), low)), Seq(0, 2))
    }
  }

  test("metrics distinguish partition values from statistics") {
    val files = columns(file("a", "1"), file("a", "1", 10, 20), file("b", "1", 10, 20))
    val selection = FileSelection.select(
      files,
      Seq(And(EqualTo(col("p"), lit("a")), GreaterThan(col("int"), lit(15))))
    )
    assertEquals(selection.files.toSeq, Seq(1))
    assertEquals(selection.totalFiles, 3)
    assertEquals(selection.skippedByPartitions, 1)
    assertEquals(selection.skippedByStats, 1)
    assertEquals(selection.unevaluated.toSeq, Nil)
  }

  test("no filter and no file") {
    assertEquals(select(table), Seq(0, 1, 2, 3))
    assertEquals(select(columns(), EqualTo(col("int"), lit(1))), Nil)
  }

  test("a value that cannot be parsed leaves its file unevaluated unless another filter skips it") {
    val files =
      columns(file("a", "1"), file("a", "oops"), file("b", "oops"), file("a", "oops", 50, 60))
    val filters =
      Seq(EqualTo(col("p"), lit("a")), EqualTo(col("q"), lit(2)), LessThan(col("int"), lit(10)))
    val selection = FileSelection.select(files, filters)
    assertEquals(selection.files.toSeq, Seq(1))
    assertEquals(selection.unevaluated.toSeq, Seq(1))
    assertEquals(select(files, filters.head), Seq(0, 1, 3))
  }

  test("an expression that fails skips nothing, and is left to Spark") {
    val risky = EqualTo(cast("p", IntegerType), lit(1))
    val selection = FileSelection.select(table, Seq(risky))
    assertEquals(selection.unevaluated.toSeq, Nil)
    assertEquals(FileSelection.split(Seq(risky), skippingSchema), FilterSplit(Nil, Seq(risky)))
  }

  test("a filter that fails too often is no longer evaluated, and skips nothing more") {
    val files = columns((0 to 3000).map(i => file(if (i == 3000) "7" else "a", "1")): _*)
    assertEquals(select(files, EqualTo(cast("p", IntegerType), lit(1))).size, 3001)
  }

  test("a failing part does not matter where another part is sufficient, compiled or not") {
    val risky = EqualTo(cast("p", IntegerType), lit(1))
    val predicate =
      Or(
        And(GreaterThan(col("int"), lit(100)), risky),
        And(GreaterThan(col("int"), lit(200)), risky)
      )
    Seq(10, 5000).foreach { count =>
      val files = columns(Seq.fill(count)(file("a", "1", 10, 20)): _*)
      assertEquals(select(files, predicate), Nil, s"$count files")
    }
  }

  test("split returns filters that must still be evaluated for rows or may fail") {
    val fullyEvaluated = Seq(
      EqualTo(col("p"), lit("a")),
      Or(Not(In(col("q"), Seq(lit(1), lit(2)))), IsNull(col("p"))),
      GreaterThan(Cast(col("q"), LongType), lit(3L)),
      StartsWith(col("p"), lit("a"))
    )
    val remaining = Seq(
      EqualTo(col("int"), lit(1)),
      And(EqualTo(col("p"), lit("a")), EqualTo(col("int"), lit(1))),
      EqualTo(Upper(col("p")), lit("A")),
      LessThan(Rand(lit(1L)), cast("q", DoubleType)),
      EqualTo(AttributeReference("p", IntegerType)(), lit(1)),
      Exists(OneRowRelation())
    )
    assertEquals(
      FileSelection.split(fullyEvaluated ++ remaining, skippingSchema),
      FilterSplit(fullyEvaluated, remaining)
    )
  }

  /** Files that contain one number each. Counts reads of their statistics. */
  private final class Numbered(first: Int, override val size: Int) extends FileStatsSource {
    val statsReads = new AtomicInteger
    val partitionReads = new AtomicInteger

    override def partitionValue(i: Int, column: String): String = {
      partitionReads.incrementAndGet()
      if (first + i == 500) "a" else "b"
    }

    override def stats(i: Int): String = {
      statsReads.incrementAndGet()
      between("int", (first + i).toString, (first + i).toString).stats
    }

    override def hasDeletionVector(i: Int): Boolean = false

    /** Partition values and statistics. */
    def reads: (Int, Int) = (partitionReads.get, statsReads.get)
  }

  test("values are decoded once, statistics only near the files that partition values select") {
    val source = new Numbered(0, 1000)
    val files = new FileStatsColumns(source, skippingSchema, parser)
    val filters = Seq(EqualTo(col("p"), lit("a")), EqualTo(col("int"), lit(500)))
    assertEquals(FileSelection.select(files, filters).files.toSeq, Seq(500))
    assertEquals(source.reads, (1000, 64))
    assertEquals(select(files, EqualTo(col("int"), lit(7))), Seq(7))
    assertEquals(source.reads, (1000, 1000))
    assertEquals(FileSelection.select(files, filters).files.toSeq, Seq(500))
    assertEquals(select(files, EqualTo(col("int"), lit(8))), Seq(8))
    assertEquals(source.reads, (1000, 1000))
  }

  test(
    "files in several parts are selected as if they were in one, and each part is read once"
  ) {
    val old = new Numbered(0, 1000)
    val added = new Numbered(1000, 10)
    val (first, second) = (new DecodedStats(old, parser), new DecodedStats(added, parser))
    def view(parts: Seq[DecodedStats], live: Array[Int]): FileStatsColumns = {
      val ends = parts.map(_.size).scanLeft(0)(_ + _).toArray
      val places = new FileParts(live.length, ends.init, ends.tail, live)
      new FileStatsColumns(parts.toVector, places, skippingSchema)
    }
    val before = view(Seq(first), Array.range(0, 1000))
    val wanted = In(col("int"), Seq(lit(7), lit(500), lit(1003)))
    assertEquals(select(before, wanted), Seq(7, 500))
    // One file was removed, ten were added.
    val after = view(Seq(first, second), Array.range(0, 1010).filterNot(_ == 7))
    assertEquals(select(after, wanted), Seq(499, 1002))
    assertEquals(select(after, EqualTo(col("p"), lit("a"))), Seq(499))
    assertEquals((old.reads, added.reads), ((1000, 1000), (10, 10)))
    assertEquals(after.numRecords(1002), Some(10L))
    // In any order, as callers may list files.
    assertEquals(select(view(Seq(first, second), Array(1003, 8, 500)), wanted), Seq(0, 2))
  }

  test("values decoded for a snapshot are reused by the next one, and included in the size") {
    def number(i: Int) = TableBuilder.add(s"f$i")
      .copy(stats = Some(between("int", i.toString, i.toString).stats))
    val table = TableBuilder.created((0 until 5000).map(number): _*)
    val log = table.open()
    def found(snapshot: Snapshot, wanted: Int): Seq[String] = {
      val columns = SnapshotStatistics.of(snapshot.filesInMemory, skippingSchema, ZoneOffset.UTC)
      select(columns, EqualTo(col("int"), lit(wanted))).map(snapshot.filesInMemory.path)
    }
    val one = log.latest()
    val read = one.retainedBytes
    assertEquals(found(one, 7), Seq("f7"))
    val decoded = one.retainedBytes
    // Two totals, two bounds and a count of nulls, of 8 bytes each.
    assert(decoded >= read + 5000 * 40, s"$read, then $decoded")
    table.commit(1, number(5000), number(7).remove(1))
    val two = log.latest()
    assert(two.retainedBytes > decoded, s"$decoded, then ${two.retainedBytes}")
    assertEquals(found(two, 7), Nil)
    assertEquals(found(two, 5000), Seq("f5000"))
    assert(two.retainedBytes < decoded + 2000, s"$decoded, then ${two.retainedBytes}")
  }

  test("the decoded size is available while more is being decoded") {
    val (reading, reported) = (new CountDownLatch(1), new CountDownLatch(1))
    val source = new FileStatsSource {
      override def size: Int = 1
      override def partitionValue(i: Int, column: String): String = null
      override def stats(i: Int): String = {
        reading.countDown()
        // Not within an assert, which keeps every other assert of the suite waiting.
        if (reported.await(60, TimeUnit.SECONDS)) "{}" else throw new IllegalStateException("late")
      }
      override def hasDeletionVector(i: Int): Boolean = false
    }
    val decoded = new DecodedStats(source, parser)
    val threads = Executors.newFixedThreadPool(2)
    implicit val context: ExecutionContext = ExecutionContext.fromExecutor(threads)
    try {
      val query = Future(decoded.numRecords(0))
      reading.await()
      assert(Await.result(Future(decoded.retainedBytes), 10.seconds) > 0)
      reported.countDown()
      assertEquals(Await.result(query, 10.seconds), None)
    } finally {
      reported.countDown()
      threads.shutdown()
    }
  }

  test("a failure to read statistics fails the query") {
    val source = new FileStatsSource {
      override def size: Int = 20000
      override def partitionValue(i: Int, column: String): String = null
      override def stats(i: Int): String =
        if (i == 15000) throw new IllegalStateException("gone") else "{}"
      override def hasDeletionVector(i: Int): Boolean = false
    }
    val files = new FileStatsColumns(source, skippingSchema, parser)
    intercept[IllegalStateException](select(files, EqualTo(col("int"), lit(1))))
  }

  test("many files, many threads, different columns: each finds its file") {
    val count = 30000
    val source = new FileStatsSource {
      override def size: Int = count
      override def partitionValue(i: Int, column: String): String = (i % 7).toString
      override def stats(i: Int): String =
        s"""{"numRecords":1,"minValues":{"x_int":$i,"x_long":${-i},"x_string":"s$i"},
            "maxValues":{"x_int":$i,"x_long":${-i},"x_string":"s$i"},
            "nullCount":{"x_int":0,"x_long":0,"x_string":0}}"""
      override def hasDeletionVector(i: Int): Boolean = false
    }
    val files = new FileStatsColumns(source, skippingSchema, parser)
    val threads = Executors.newFixedThreadPool(6)
    implicit val context: ExecutionContext = ExecutionContext.fromExecutor(threads)
    try {
      val found = (0 until 60).map { k =>
        val i = k * 499
        val onColumn = k % 3 match {
          case 0 => EqualTo(col("int"), lit(i))
          case 1 => EqualTo(col("long"), lit(-i.toLong))
          case _ => EqualTo(col("string"), lit(s"s$i"))
        }
        val filters =
          if (k % 2 == 0) Seq(onColumn) else Seq(EqualTo(col("q"), lit(i % 7)), onColumn)
        Future(i -> FileSelection.select(files, filters).files.toSeq)
      }
      found.foreach { f =>
        val (expected, got) = Await.result(f, 2.minutes)
        assertEquals(got, Seq(expected))
      }
    } finally threads.shutdown()
  }
}
