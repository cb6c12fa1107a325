package io.deltaic.spark.skipping

import munit.FunSuite
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.spark.schema.SkippingSchema

/** Each rule with a file that it skips and files that it must select. */
class SkippingRulesSuite extends FunSuite {
  import StatsTable._

  private val ten = between("int", "10", "20")
  private val same = between("int", "7", "7")
  private val allNull = stats("int", nullCount = Some(10))
  private val noStats = FileStats(null)

  private def check(name: String, filter: => Expression)(skipped: FileStats*)(selected: FileStats*)(
      implicit loc: munit.Location
  ): Unit = test(name) {
    val table = columns(skipped ++ selected: _*)
    assertEquals(select(table, filter), skipped.size until (skipped.size + selected.size): Seq[Int])
  }

  check(
    "= skips files whose bounds exclude the value",
    EqualTo(col("int"), lit(9))
  )(ten, same, allNull)(
    between("int", "9", "9"),
    between("int", "0", "20"),
    stats("int", min = Some("9")),
    noStats
  )
  check(
    "= with the literal on the left",
    EqualTo(lit(21), col("int"))
  )(ten)(between("int", "1", "21"))
  check("= skips by one bound alone", EqualTo(col("int"), lit(5)))(
    stats("int", min = Some("6")),
    stats("int", max = Some("4"))
  )(stats("int", min = Some("5")), stats("int", max = Some("5")))
  check("= null matches nothing", EqualTo(col("int"), Literal(null, IntegerType)))(ten, noStats)()

  check("<=> value is =", EqualNullSafe(col("int"), lit(9)))(ten, allNull)(between("int", "9", "9"))
  check("<=> null is IS NULL", EqualNullSafe(col("int"), Literal(null, IntegerType)))(ten)(allNull)
  check("NOT <=> value keeps nulls", Not(EqualNullSafe(col("int"), lit(7))))(same)(
    ten,
    allNull,
    stats("int", Some("7"), Some("7"), nullCount = Some(1)),
    stats("int", Some("7"), Some("7"), nullCount = None)
  )

  check("< needs a smaller lower bound", LessThan(col("int"), lit(10)))(ten, allNull)(
    between("int", "9", "20"),
    stats("int", max = Some("20"))
  )
  check(
    "<= needs a lower bound",
    LessThanOrEqual(col("int"), lit(9))
  )(ten)(between("int", "9", "20"))
  check(
    "> needs a larger upper bound",
    GreaterThan(col("int"), lit(20))
  )(ten)(between("int", "1", "21"))
  check(">= needs an upper bound", GreaterThanOrEqual(col("int"), lit(21)))(ten)(
    between("int", "1", "21")
  )
  check("literal < column", LessThan(lit(20), col("int")))(ten)(between("int", "1", "21"))
  check("literal <= column", LessThanOrEqual(lit(21), col("int")))(ten)(between("int", "1", "21"))
  check("literal > column", GreaterThan(lit(10), col("int")))(ten)(between("int", "9", "21"))
  check("literal <=> column", EqualNullSafe(lit(9), col("int")))(ten)(between("int", "9", "9"))
  check("null <=> column", EqualNullSafe(Literal(null, IntegerType), col("int")))(ten)(allNull)
  check("NOT literal <=> column keeps nulls", Not(EqualNullSafe(lit(7), col("int"))))(same)(allNull)
  check("NOT literal < column", Not(LessThan(lit(20), col("int"))))(between("int", "21", "30"))(ten)
  private val noInt = Literal(null, IntegerType)
  Seq(
    LessThan(_, _),
    LessThanOrEqual(_, _),
    GreaterThan(_, _),
    GreaterThanOrEqual(_, _),
    EqualTo(_, _)
  ).foreach { make: ((Expression, Expression) => Expression) =>
    val name = make(col("int"), noInt).prettyName
    check(s"$name with null matches nothing", make(col("int"), noInt))(ten, noStats)()
    check(s"NOT $name with null matches nothing", Not(make(noInt, col("int"))))(ten, noStats)()
  }
  check("literal >= column", GreaterThanOrEqual(lit(9), col("int")))(ten)(between("int", "9", "21"))

  check("NOT < is >=", Not(LessThan(col("int"), lit(21))))(ten)(between("int", "1", "21"))
  check("NOT >= is <", Not(GreaterThanOrEqual(col("int"), lit(10))))(ten)(between("int", "9", "9"))
  check("NOT = skips files of one value", Not(EqualTo(col("int"), lit(7))))(same, allNull)(
    ten,
    stats("int", min = Some("7"))
  )
  check("NOT <= is >", Not(LessThanOrEqual(col("int"), lit(20))))(ten)(between("int", "1", "21"))
  check("NOT > is <=", Not(GreaterThan(col("int"), lit(9))))(ten)(between("int", "9", "9"))
  check("NOT NOT", Not(Not(EqualTo(col("int"), lit(9)))))(ten)(between("int", "9", "9"))

  check("IN", In(col("int"), Seq(lit(9), lit(21), lit(30))))(ten, allNull)(
    between("int", "10", "21"),
    stats("int", min = Some("30")),
    noStats
  )
  check("IN ignores null", In(col("int"), Seq(lit(9), Literal(null, IntegerType))))(ten)(
    between("int", "9", "9")
  )
  check("IN nulls alone", In(col("int"), Seq(Literal(null, IntegerType))))(ten, noStats)()
  check("INSET", InSet(col("int"), (21 to 300).toSet))(ten)(between("int", "10", "21"))
  private val many = (-5000 to 5).map(lit(_)) ++ (25 to 5000).map(lit(_))
  check("IN with thousands of values", In(col("int"), many))(ten)(
    between("int", "10", "25"),
    between("int", "-9999", "-5000"),
    noStats
  )
  check("NOT IN with thousands of values", Not(In(col("int"), many)))(between("int", "4", "4"))(
    ten,
    between("int", "4", "5")
  )
  check("NOT IN with thousands of values and null", Not(In(col("int"), many :+ noInt)))(ten)()
  check("IN with a column in the list", In(col("int"), Seq(lit(9), col("int"))))()(ten)
  check("NOT IN skips files of one listed value", Not(In(col("int"), Seq(lit(3), lit(7)))))(
    same,
    allNull
  )(ten, between("int", "3", "7"), between("int", "4", "4"), stats("int", min = Some("7")))
  check("NOT IN with a null matches nothing", Not(In(col("int"), Seq(Literal(null, IntegerType)))))(
    ten
  )()
  check("NOT IN of nothing matches nulls too", Not(In(col("int"), Nil)))()(ten, allNull)

  check("IS NULL", IsNull(col("int")))(ten)(
    allNull,
    stats("int", nullCount = Some(3)),
    stats("int", nullCount = None)
  )
  check("IS NOT NULL", IsNotNull(col("int")))(allNull)(
    ten,
    stats("int", nullCount = Some(9)),
    stats("int", nullCount = Some(10), numRecords = None)
  )
  check("NOT IS NULL", Not(IsNull(col("int"))))(allNull)(ten)
  check("nullness of binary", IsNull(col("binary")))(stats("binary"))(
    stats("binary", nullCount = Some(1))
  )
  check("nullness of arrays is not counted alike", IsNull(col("list")))()(stats("list"))

  private val names = between("string", "\"delta\"", "\"deltoid\"")
  check("starts with", StartsWith(col("string"), lit("dem")))(names)(
    between("string", "\"delta\"", "\"demo\""),
    between("string", "\"a\"", "\"z\""),
    stats("string", min = Some("\"demon\""))
  )
  check("starts with a longer prefix than the bounds", StartsWith(col("string"), lit("deltaic")))(
    between("string", "\"e\"", "\"f\"")
  )(names)
  check("starts with nothing", StartsWith(col("string"), lit("")))()(names)
  check("does not start with", Not(StartsWith(col("string"), lit("delt"))))(names)(
    between("string", "\"delta\"", "\"delu\""),
    between("string", "\"dels\"", "\"delt\""),
    stats("string", min = Some("\"delta\""))
  )
  check("LIKE with a prefix", Like(col("string"), lit("de_o%x"), '\\'))(
    between("string", "\"df\"", "\"z\"")
  )(names)
  check("LIKE with an escaped wildcard", Like(col("string"), lit("de\\_%"), '\\'))(names)(
    between("string", "\"de_\"", "\"de_z\"")
  )
  check("LIKE without a prefix", Like(col("string"), lit("%x"), '\\'))()(names)
  check("contains", Contains(col("string"), lit("zzz")))()(names)
  check("NOT contains", Not(Contains(col("string"), lit("delt"))))()(names)
  check("ends with", EndsWith(col("string"), lit("zzz")))()(names)
  check("LIKE a string without wildcards", Like(col("string"), lit("demo"), '\\'))(names)(
    between("string", "\"delta\"", "\"demo\"")
  )
  check("NOT LIKE", Not(Like(col("string"), lit("delt%"), '\\')))()(names)

  private val doubles = between("double", "1.0", "2.0")
  check("= on doubles", EqualTo(col("double"), lit(2.5)))(doubles)(between("double", "1.0", "2.5"))
  check("< on doubles", LessThan(col("double"), lit(1.0)))(doubles)(between("double", "0.5", "2.0"))
  check(
    "> on doubles finds NaN that bounds leave out",
    GreaterThan(col("double"), lit(2.0))
  )()(doubles)
  check(">= on doubles finds NaN", Not(LessThan(col("double"), lit(3.0))))()(doubles)
  check("= NaN", EqualTo(col("double"), lit(Double.NaN)))()(doubles)
  check("IN with NaN", In(col("double"), Seq(lit(5.0), lit(Double.NaN))))()(doubles)
  check("NOT = on doubles finds NaN", Not(EqualTo(col("double"), lit(1.0))))()(
    between("double", "1.0", "1.0")
  )
  check("-0.0 is 0.0", EqualTo(col("double"), lit(-0.0)))(doubles)(
    between("double", "0.0", "1.0"),
    between("double", "-1.0", "-0.0")
  )
  check("= 0.0 finds -0.0", EqualTo(col("double"), lit(0.0)))(between("double", "-2.0", "-1.0"))(
    between("double", "-1.0", "-0.0")
  )
  check("< 0.0 does not find -0.0", LessThan(col("double"), lit(0.0)))(
    between("double", "-0.0", "1.0")
  )(between("double", "-0.1", "1.0"))
  check("IN with 0.0 finds -0.0", In(col("float"), Seq(lit(9.0f), lit(0.0f))))(
    between("float", "0.5", "1.0")
  )(between("float", "-0.0", "-0.0"))
  check("<=> NaN", EqualNullSafe(col("float"), lit(Float.NaN)))()(between("float", "0.5", "1.0"))
  check("NOT NaN", Not(EqualTo(col("float"), lit(Float.NaN))))()(between("float", "0.5", "1.0"))
  check("infinite bounds", EqualTo(col("double"), lit(Double.PositiveInfinity)))(doubles)(
    between("double", "1.0", "\"Infinity\"")
  )
  check("< on all-NaN bounds", LessThan(col("double"), lit(1.0)))()(
    between("double", "\"NaN\"", "\"NaN\""),
    between("double", "NaN", "NaN")
  )

  check("= on decimals", EqualTo(col("dec"), typed("9.99", DecimalType(10, 2))))(
    between("dec", "10.00", "20.00")
  )(between("dec", "9.99", "20.00"))
  check("< on decimals of another scale", LessThan(col("dec"), typed("9.995", DecimalType(12, 3))))(
    between("dec", "10.00", "20.00")
  )(between("dec", "9.99", "20.00"))
  check("= on wide decimals", EqualTo(col("big"), typed("1.0000000001", DecimalType(38, 10))))(
    between("big", "1.5", "2.0")
  )(between("big", "1.0000000001", "2.0"))

  private def atMillis(field: String, zone: String) =
    between(field, s"\"2024-03-10T10:00:00.123$zone\"", s"\"2024-03-10T10:00:00.456$zone\"")
  private def instant(time: String, dataType: DataType) = typed(s"2024-03-10 10:00:$time", dataType)
  Seq(("ts", TimestampType, "Z"), ("ntz", TimestampNTZType, "")).foreach {
    case (field, dataType, zone) =>
      val file = atMillis(field, zone)
      def missed(string: String) = EqualTo(col(field), instant(string, dataType))
      check(s"$field below the bounds", missed("00.122999"))(file)()
      check(s"$field within the cut-off millisecond", missed("00.456999"))()(file)
      check(s"$field above it", missed("00.457"))(file)()
      check(s"> on $field", GreaterThan(col(field), instant("00.456", dataType)))()(file)
      check(s">= on $field", GreaterThanOrEqual(col(field), instant("00.457", dataType)))(file)()
  }

  /** As writers truncate: 32 characters of the minimum, and of the maximum with a larger character at its end. */
  private val cutAt32 = {
    val emoji = "\ud83d\ude00"
    between("string", s"\"${"a" * 32}\"", s"\"${emoji * 31}z\udbff\udfff\"")
  }
  private val emoji32 = "\ud83d\ude00" * 31
  check("a string longer than a cut lower bound", EqualTo(col("string"), lit("a" * 40)))()(cutAt32)
  check("a string below a cut lower bound", EqualTo(col("string"), lit("a" * 31)))(cutAt32)()
  check("a string longer than a cut upper bound", EqualTo(col("string"), lit(emoji32 + "zzz")))()(
    cutAt32
  )
  check(
    "an astral string above a cut upper bound",
    GreaterThan(col("string"), lit(emoji32 + "\ud83d\ude00"))
  )(cutAt32)()
  check("a prefix longer than the cut", StartsWith(col("string"), lit(emoji32 + "zy")))(
    between("string", "\"a\"", s"\"${emoji32.drop(2)}z\"")
  )(cutAt32)

  private def wide(file: FileStats) =
    file.copy(
      stats = file.stats.replaceFirst("\\{", "{\"tightBounds\":false,"),
      hasDeletionVector = true
    )
  check("wide bounds are limits", EqualTo(col("int"), lit(9)))(wide(ten))(
    wide(between("int", "9", "20"))
  )
  check("wide null counts of none", IsNull(col("int")))(wide(ten))(
    wide(stats("int", nullCount = Some(3)))
  )
  check("wide null counts of all", IsNotNull(col("int")))(wide(allNull))(
    wide(stats("int", nullCount = Some(9))),
    wide(ten)
  )
  check("wide bounds of one value", Not(EqualTo(col("int"), lit(7))))(wide(same))(wide(ten))

  check(
    "AND skips by either side",
    And(EqualTo(col("int"), lit(9)), EqualTo(col("long"), lit(1L)))
  )(
    ten
  )(between("int", "9", "9"), between("long", "1", "1"))
  check("OR skips by both", Or(EqualTo(col("int"), lit(9)), LessThan(col("int"), lit(5))))(ten)(
    between("int", "0", "3"),
    between("int", "9", "9")
  )
  check(
    "OR with an unknown side",
    Or(EqualTo(col("int"), lit(9)), EqualTo(col("long"), lit(1L)))
  )()(ten)
  check(
    "NOT AND by De Morgan",
    Not(And(LessThan(col("int"), lit(30)), GreaterThan(col("int"), lit(5))))
  )(
    ten
  )(between("int", "5", "6"), between("int", "6", "30"))
  check("NOT OR by De Morgan", Not(Or(LessThan(col("int"), lit(21)), IsNull(col("long")))))(ten)(
    between("int", "6", "30")
  )
  check("false", Literal(false))(ten, noStats)()
  check("null", Literal(null, BooleanType))(ten, noStats)()
  check("NOT null", Not(Literal(null, BooleanType)))(ten, noStats)()
  check("true", Literal(true))()(ten, noStats)
  check("a boolean column", col("bool"))(between("bool", "false", "false"))(
    between("bool", "false", "true"),
    stats("bool", max = None)
  )
  check("NOT a boolean column", Not(col("bool")))(between("bool", "true", "true"))(
    between("bool", "false", "true")
  )

  check("nested field", EqualTo(col("nest.deep.s"), lit("m")))(
    between("nest.deep.s", "\"n\"", "\"z\"")
  )(between("nest.deep.s", "\"a\"", "\"z\""), between("nest.n", "1", "2"))
  test("a field of a pruned struct is found by its name") {
    val pruned = AttributeReference(
      "nest",
      new StructType().add("deep", new StructType().add("s", StringType))
    )()
    val field = GetStructField(GetStructField(pruned, 0), 0)
    val table = columns(between("nest.deep.s", "\"n\"", "\"z\""))
    assertEquals(select(table, EqualTo(field, lit("m"))), Nil)
  }
  test("an attribute that differs in case is found, one of another type is not") {
    val table = columns(ten)
    assertEquals(select(table, EqualTo(AttributeReference("INT", IntegerType)(), lit(9))), Nil)
    assertEquals(select(table, EqualTo(AttributeReference("int", LongType)(), lit(9L))), Seq(0))
    assertEquals(select(table, EqualTo(AttributeReference("other", IntegerType)(), lit(9))), Seq(0))
  }

  private val today = typed("2024-03-10", DateType)
  private def cast(path: String, to: DataType) = Cast(col(path), to, Some("America/St_Johns"))
  check("a widening cast", EqualTo(cast("int", LongType), lit(9L)))(ten)(between("int", "9", "9"))
  check("a cast to double holds no NaN", GreaterThan(cast("int", DoubleType), lit(20.5)))(ten)(
    between("int", "9", "21")
  )
  check(
    "a cast to decimal",
    LessThan(cast("int", DecimalType(12, 2)), typed("9.99", DecimalType(12, 2)))
  )(
    ten
  )(between("int", "9", "9"))
  check("a cast to string", EqualTo(cast("int", StringType), lit("9")))()(ten)
  check("a cast of a string to a date", EqualTo(cast("string", DateType), today))()(
    between("string", "\"2025-01-01\"", "\"2025-12-31\"")
  )
  check("a cast of a string to a number", EqualTo(cast("string", IntegerType), lit(9)))()(
    between("string", "\"10\"", "\"20\"")
  )
  check("nullness of a widening cast", IsNull(cast("int", LongType)))(ten)(allNull)
  check(
    "a cast of a timestamp to a date, with a day's grace",
    EqualTo(cast("ts", DateType), today)
  )(
    between("ts", "\"2024-03-12T12:00:00.000Z\"", "\"2024-03-13T00:00:00.000Z\"")
  )(
    between("ts", "\"2024-03-11T12:00:00.000Z\"", "\"2024-03-12T00:00:00.000Z\""),
    between("ts", "\"2024-03-10T12:00:00.000Z\"", "\"2024-03-10T13:00:00.000Z\"")
  )
  check(
    "a cast of a date to a timestamp",
    LessThan(cast("date", TimestampType), typed("2024-03-10 02:30:00", TimestampType))
  )(
    between("date", "\"2024-03-10\"", "\"2024-03-11\"")
  )(between("date", "\"2024-03-09\"", "\"2024-03-11\""))
  check("a non-deterministic filter", LessThan(Rand(lit(1L)), col("double")))()(doubles)
  check("an unsupported expression", EqualTo(Pmod(col("int"), lit(3)), lit(9)))()(ten)
  check("two columns of different types", EqualTo(col("int"), col("byte")))()(ten)

  private def two(int: (Int, Int), nested: (Int, Int), nulls: Long = 0): FileStats = FileStats(
    s"""{"numRecords":10,"minValues":{"x_int":${int._1},"x_nest":{"x_n":${nested._1}}},
       |"maxValues":{"x_int":${int._2},"x_nest":{"x_n":${nested._2}}},
       |"nullCount":{"x_int":0,"x_nest":{"x_n":$nulls}}}""".stripMargin
  )
  private val below = two(1 -> 5, 6 -> 9)
  private val above = two(6 -> 9, 1 -> 5)
  private val touching = two(1 -> 5, 5 -> 9)
  private val equal = two(5 -> 5, 5 -> 5)
  private val n = col("nest.n")

  check("column = column needs bounds that meet", EqualTo(col("int"), n))(
    below,
    above,
    two(1 -> 9, 1 -> 9, nulls = 10)
  )(touching, equal, ten, noStats)
  check("column <> column needs values that differ", Not(EqualTo(col("int"), n)))(equal)(
    below,
    touching,
    noStats
  )
  check("column < column", LessThan(col("int"), n))(above, equal)(below, touching, ten)
  check("column <= column", LessThanOrEqual(col("int"), n))(above)(below, equal, noStats)
  check("column > column", GreaterThan(col("int"), n))(below, touching, equal)(above, ten)
  check("column >= column", GreaterThanOrEqual(col("int"), n))(below)(above, touching, equal)
  private val nullsBelow = FileStats(
    """{"numRecords":10,"minValues":{"x_int":1,"x_nest":{"x_n":6}},
      |"maxValues":{"x_int":5,"x_nest":{"x_n":9}},"nullCount":{"x_int":2,"x_nest":{"x_n":2}}}""".stripMargin
  )
  check("column <=> column needs bounds that meet, or nulls", EqualNullSafe(col("int"), n))(
    below,
    above
  )(touching, equal, nullsBelow, noStats)
  check("NOT column <=> column needs values that differ", Not(EqualNullSafe(col("int"), n)))(equal)(
    below,
    nullsBelow,
    two(5 -> 5, 5 -> 5, nulls = 1)
  )
  check("NOT column < column", Not(LessThan(col("int"), n)))(below)(above, touching, equal)
  check(
    "column < column where the greater may be NaN",
    LessThan(Cast(col("int"), DoubleType), col("double"))
  )()(
    FileStats(
      """{"numRecords":10,"minValues":{"x_int":5,"x_double":1.0},
        |"maxValues":{"x_int":6,"x_double":2.0}}""".stripMargin
    )
  )
  check(
    "a foldable expression",
    EqualTo(col("int"), Add(lit(4), lit(5)))
  )(ten)(between("int", "9", "9"))
  check("a constant that fails", EqualTo(col("int"), Divide(lit(1), lit(0))))()(ten)
  check(
    "a subquery is left alone",
    Exists(org.apache.spark.sql.catalyst.plans.logical.OneRowRelation())
  )()(ten)

  test("collated strings have another order than their bounds") {
    val schema = new StructType().add("c", StringType("UTF8_LCASE"))
    val file =
      ListedFileStats(Vector(FileStats("""{"minValues":{"c":"a"},"maxValues":{"c":"b"}}""")))
    val c = AttributeReference("c", schema.head.dataType)()
    val filter = EqualTo(c, Literal(UTF8String.fromString("X"), schema.head.dataType))
    val found = FileSelection.select(
      new FileStatsColumns(file, new SkippingSchema(schema, Nil), parser),
      Seq(filter)
    )
    assertEquals(found.files.toSeq, Seq(0))
  }
}
