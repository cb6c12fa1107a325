package io.deltaic.spark.skipping

import munit.FunSuite
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

/** Functions over columns: each with a file that it skips and files that it must select. */
class SkippingFunctionsSuite extends FunSuite {
  import StatsTable._

  private def check(name: String, filter: => Expression)(skipped: FileStats*)(selected: FileStats*)(
      implicit loc: munit.Location
  ): Unit = test(name) {
    val table = columns(skipped ++ selected: _*)
    assertEquals(select(table, filter), skipped.size until (skipped.size + selected.size): Seq[Int])
  }

  private val NewYork = Some("America/New_York")
  private val int = col("int")
  private val long = col("long")
  private val ten = between("int", "10", "20")
  private val noStats = FileStats(null)
  private def nulls(path: String, min: String, max: String) =
    stats(path, Some(min), Some(max), nullCount = Some(1))
  private def allNull(path: String) = stats(path, nullCount = Some(10))

  private def coalesce(choices: Expression*) = Coalesce(choices)
  check("coalesce with a constant that satisfies", EqualTo(coalesce(int, lit(0)), lit(0)))(ten)(
    nulls("int", "10", "20"),
    allNull("int"),
    between("int", "0", "20"),
    noStats
  )
  check("coalesce with one that does not", GreaterThan(coalesce(int, lit(0)), lit(20)))(
    ten,
    nulls("int", "10", "20"),
    allNull("int")
  )(between("int", "10", "21"), noStats)
  check("NOT on coalesce", Not(GreaterThan(coalesce(int, lit(0)), lit(9))))(ten)(
    nulls("int", "10", "20"),
    between("int", "9", "20")
  )
  check("coalesce in IN", In(coalesce(int, lit(0)), Seq(lit(0), lit(9))))(ten)(
    nulls("int", "10", "20")
  )
  check("coalesce under a cast", EqualTo(Cast(coalesce(int, lit(0)), LongType), lit(9L)))(
    ten,
    nulls("int", "10", "20")
  )(between("int", "9", "20"))
  check("coalesce of two columns", EqualTo(coalesce(int, col("nest.n"), lit(3)), lit(9)))(ten)(
    nulls("int", "10", "20")
  )
  check("coalesce is null", IsNull(coalesce(int, Literal(null, IntegerType))))(ten)(
    nulls("int", "10", "20")
  )
  check("coalesce with a constant is never null", IsNull(coalesce(int, lit(1))))(
    ten,
    nulls("int", "10", "20"),
    noStats
  )()
  check(
    "coalesce of a boolean",
    coalesce(col("bool"), Literal(false))
  )(between("bool", "false", "false"), allNull("bool"))(between("bool", "false", "true"))
  private val y = NamedLambdaVariable("y", IntegerType, nullable = true)
  private def someOf(body: Expression) = {
    val list = CreateArray(Seq(lit(7), Literal(null, IntegerType)))
    ArrayExists(list, LambdaFunction(body, Seq(y)))
  }
  check(
    "coalesce of a lambda's variable",
    someOf(GreaterThan(coalesce(y, int, lit(0)), lit(5)))
  )()(ten, allNull("int"))
  check(
    "coalesce of columns within a lambda",
    someOf(GreaterThan(coalesce(int, lit(0)), y))
  )(allNull("int"))(ten)
  check(
    "a lambda over partition values",
    someOf(EqualTo(y, Add(col("q"), lit(6))))
  )(FileStats(null, Map("x_q" -> "2")))(FileStats(null, Map("x_q" -> "1")))
  check("more choices than are worth it", EqualTo(coalesce(Seq.fill(9)(int): _*), lit(9)))()(ten)

  private val spring = between("date", "\"2024-03-10\"", "\"2024-05-20\"")
  private def day(string: String) = typed(string, DateType)
  check("year of a date", EqualTo(Year(col("date")), lit(2023)))(spring, allNull("date"))(
    between("date", "\"2023-12-31\"", "\"2024-05-20\""),
    noStats
  )
  check("year in a list", In(Year(col("date")), Seq(lit(2020), lit(2023))))(spring)(
    between("date", "\"2020-01-01\"", "\"2020-01-02\"")
  )
  check("NOT the year", Not(EqualTo(Year(col("date")), lit(2024))))(spring)(
    between("date", "\"2023-12-31\"", "\"2024-05-20\"")
  )
  check(
    "trunc to a month",
    EqualTo(TruncDate(col("date"), lit("month")), day("2024-06-01"))
  )(spring)(between("date", "\"2024-05-31\"", "\"2024-06-30\""))
  check("trunc to no unit is null", IsNull(TruncDate(col("date"), lit("day"))))()(spring)
  check("a date and some days", EqualTo(DateAdd(col("date"), lit(7)), day("2024-03-16")))(spring)(
    between("date", "\"2024-03-09\"", "\"2024-03-09\"")
  )
  check("a date less some days", LessThan(DateSub(col("date"), lit(7)), day("2024-03-03")))(spring)(
    between("date", "\"2024-03-09\"", "\"2024-05-20\"")
  )
  check("a date as a string", GreaterThan(Cast(col("date"), StringType), lit("2024-06")))(spring)(
    between("date", "\"2024-03-10\"", "\"2024-06-01\"")
  )

  private def nextDay(date: Expression) = Cast(DateAdd(date, lit(1)), StringType)
  check("a date as a string, up to the year 9999", LessThan(nextDay(col("date")), lit("2024")))(
    spring,
    between("date", "\"2024-03-10\"", "\"9999-12-30\"")
  )(
    between("date", "\"2024-03-10\"", "\"9999-12-31\""),
    stats("date", min = Some("\"2024-03-10\"")),
    stats("date", max = Some("\"2024-05-20\""))
  )
  check(
    "a local date as a string beside one that never ends",
    EqualTo(Cast(Cast(col("ts"), DateType, NewYork), StringType), lit("2022-05-05"))
  )()(between("ts", "\"2022-05-05T12:00:00.000Z\"", "\"9999-12-31T05:00:00.000Z\""))

  private val morning = between(
    "ts",
    "\"2024-03-09T15:00:00.000Z\"",
    "\"2024-03-10T15:00:00.000Z\""
  )
  private def trunc(unit: String) = TruncTimestamp(lit(unit), col("ts"), NewYork)
  private def time(string: String) = typed(string, TimestampType)
  check(
    "date_trunc to a day, with a day's grace",
    EqualTo(trunc("day"), time("2024-03-12 04:00:00"))
  )(
    morning
  )(between("ts", "\"2024-03-11T15:00:00.000Z\"", "\"2024-03-11T16:00:00.000Z\""))
  check("date_trunc to a month", LessThan(trunc("MM"), time("2024-03-01 05:00:00")))(morning)(
    between("ts", "\"2024-03-01T15:00:00.000Z\"", "\"2024-03-11T16:00:00.000Z\"")
  )
  check("date_trunc to an hour", EqualTo(trunc("hour"), time("2024-03-12 04:00:00")))(morning)(
    between("ts", "\"2024-03-11T15:00:00.000Z\"", "\"2024-03-11T16:00:00.000Z\"")
  )
  check("date_trunc to a second", GreaterThan(trunc("second"), time("2024-03-10 15:00:00")))(
    morning
  )(between("ts", "\"2024-03-10T15:00:00.000Z\"", "\"2024-03-10T15:00:01.000Z\""))
  check("date_trunc to no unit is null", IsNull(trunc("fortnight")))()(morning)
  check("year of a timestamp", EqualTo(Year(Cast(col("ts"), DateType, NewYork)), lit(2023)))(
    morning
  )(between("ts", "\"2024-01-01T15:00:00.000Z\"", "\"2024-03-11T16:00:00.000Z\""))

  private def mode(wanted: EvalMode.Value) = NumericEvalContext(wanted)
  Seq(EvalMode.ANSI, EvalMode.LEGACY).map(mode).foreach { m =>
    def named(string: String) = s"$string (${m.evalMode})"
    check(named("column + constant"), EqualTo(Add(int, lit(1), m), lit(10)))(ten)(
      between("int", "9", "9"),
      stats("int", min = Some("10")),
      noStats
    )
    check(named("constant + column"), EqualTo(Add(lit(1), int, m), lit(22)))(ten)(
      between("int", "10", "21")
    )
    check(named("column - constant"), LessThan(Subtract(int, lit(1), m), lit(9)))(ten)(
      between("int", "9", "20")
    )
    check(named("constant - column turns around"), GreaterThan(Subtract(lit(0), int, m), lit(-10)))(
      ten
    )(between("int", "9", "20"))
    check(named("column * constant"), EqualTo(Multiply(int, lit(3), m), lit(63)))(ten)(
      between("int", "10", "21")
    )
    check(named("column * negative constant"), EqualTo(Multiply(int, lit(-3), m), lit(-63)))(ten)(
      between("int", "10", "21")
    )
    check(named("column * 0"), EqualTo(Multiply(int, lit(0), m), lit(1)))()(ten)
    check(named("column DIV constant"), EqualTo(IntegralDivide(long, lit(10L), m), lit(3L)))(
      between("long", "10", "29")
    )(between("long", "10", "30"))
    check(named("column / constant"), LessThan(Divide(col("double"), lit(-2.0), m), lit(-1.5)))(
      between("double", "1.0", "2.0")
    )(between("double", "1.0", "4.0"))
    check(
      named("column / constant, below"),
      LessThan(Divide(col("double"), lit(2.0), m), lit(0.5))
    )(
      between("double", "1.0", "2.0")
    )(between("double", "0.5", "4.0"))
    check(named("a sum that leaves its type's range"), LessThan(Add(int, lit(1), m), lit(5)))(ten)(
      between("int", "10", Int.MaxValue.toString)
    )
    check(named("the same with one bound alone"), LessThan(Add(int, lit(1), m), lit(5)))()(
      stats("int", min = Some("10"))
    )
  }
  check("- column", LessThan(UnaryMinus(int, failOnError = true), lit(-20)))(ten)(
    between("int", "10", "21")
  )
  check("- the least number", LessThan(UnaryMinus(int, failOnError = false), lit(-30)))(ten)(
    between("int", Int.MinValue.toString, "0")
  )
  check("try_add may be null", IsNull(Add(int, lit(1), mode(EvalMode.TRY))))()(ten)
  check(
    "a sum with an infinity",
    EqualTo(Add(col("double"), lit(Double.NegativeInfinity)), lit(0.0))
  )()(
    between("double", "1.0", "2.0")
  )
  private val narrow = Cast(long, IntegerType, None, EvalMode.LEGACY)
  check("a narrowing cast", EqualTo(narrow, lit(9)))(between("long", "10", "20"))(
    between("long", "9", "20"),
    between("long", "10", (1L << 32).toString),
    between("long", "4294967300", "4294967310")
  )
  check("try_cast may be null", IsNull(Cast(long, IntegerType, None, EvalMode.TRY)))()(
    between("long", "10", "20")
  )
  check("the start of a string", EqualTo(Substring(col("string"), lit(1), lit(2)), lit("zz")))(
    between("string", "\"delta\"", "\"deltoid\"")
  )(between("string", "\"delta\"", "\"zzt\""))
  check("the middle of a string", EqualTo(Substring(col("string"), lit(2), lit(2)), lit("zz")))()(
    between("string", "\"delta\"", "\"deltoid\"")
  )
  check(
    "one function of another",
    EqualTo(Year(DateAdd(col("date"), lit(366))), lit(2024))
  )(spring)(
    between("date", "\"2023-12-30\"", "\"2024-12-31\"")
  )
  check("a function of two columns", GreaterThan(Add(int, col("nest.n")), lit(9)))()(ten)
  check("a function beside a column", LessThan(Add(int, lit(5)), col("nest.n")))(
    FileStats(
      """{"numRecords":10,"minValues":{"x_int":10,"x_nest":{"x_n":1}},
        |"maxValues":{"x_int":20,"x_nest":{"x_n":15}}}""".stripMargin
    )
  )(ten)
}
