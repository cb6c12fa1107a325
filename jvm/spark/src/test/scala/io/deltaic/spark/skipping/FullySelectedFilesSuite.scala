package io.deltaic.spark.skipping

import munit.FunSuite
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** Files of which every row provably satisfies conditions. */
class FullySelectedFilesSuite extends FunSuite {
  import StatsTable._

  private def whole(file: FileStats, conditions: Seq[Expression]): Boolean =
    FileSelection.fullySelected(columns(file), Array(0), conditions).nonEmpty

  private def hits(name: String, file: FileStats)(conditions: Expression*)(implicit
      loc: munit.Location
  ): Unit = test(s"all rows: $name")(assert(whole(file, conditions)))

  private def misses(name: String, file: FileStats)(conditions: Expression*)(implicit
      loc: munit.Location
  ): Unit = test(s"not all rows: $name")(assert(!whole(file, conditions)))

  private val ints = between("int", "10", "19")
  private def of(file: FileStats, p: String): FileStats =
    file.copy(partitionValues = Map("x_p" -> p, "x_q" -> "1"))
  private def string(s: String): Literal = Literal(UTF8String.fromString(s), StringType)

  hits("no condition", FileStats(null))()
  hits("a bound within", ints)(LessThan(col("int"), lit(20)))
  hits("several conditions", ints)(
    IsNotNull(col("int")),
    GreaterThan(col("int"), lit(9)),
    LessThanOrEqual(col("int"), lit(19))
  )
  hits("constant", between("int", "7", "7"))(In(col("int"), Seq(lit(3), lit(7))))
  hits("not one of them", ints)(Not(InSet(col("int"), Set(3, 7))))
  hits("nulls that are selected", stats("int", nullCount = Some(10)))(IsNull(col("int")))
  hits("nulls that compare", stats("int", nullCount = Some(10)))(
    EqualNullSafe(col("int"), Literal(null, IntegerType))
  )
  hits("a column and its nulls", between("int", "10", "19"))(
    Or(LessThan(col("int"), lit(20)), IsNull(col("long")))
  )
  hits("wide bounds", ints.copy(hasDeletionVector = true))(LessThan(col("int"), lit(20)))
  hits("a nested field", between("nest.n", "1", "2"))(GreaterThan(col("nest.n"), lit(0)))
  hits("a prefix", between("string", "\"ab\"", "\"abz\""))(StartsWith(col("string"), string("ab")))
  hits(
    "a date of a timestamp",
    between("ts", "\"2024-05-03T00:00:00Z\"", "\"2024-05-04T00:00:00Z\"")
  )(
    LessThan(Cast(col("ts"), DateType, Some("UTC")), typed("2024-05-20", DateType))
  )
  hits("a partition", of(FileStats(null), "a"))(EqualTo(col("p"), lit("a")))
  hits("an expression over partition values", of(FileStats(null), "a"))(
    EqualTo(Upper(col("p")), lit("A"))
  )
  hits("a partition or a bound", of(ints, "b"))(
    Or(EqualTo(col("p"), lit("a")), LessThan(col("int"), lit(20))),
    EqualTo(col("p"), lit("b"))
  )

  misses("a bound beyond", ints)(LessThan(col("int"), lit(19)))
  misses("one of the conditions", ints)(
    LessThan(col("int"), lit(20)),
    GreaterThan(col("long"), lit(0L))
  )
  misses("no statistics", FileStats(null))(LessThan(col("int"), lit(20)))
  misses("a null", stats("int", Some("10"), Some("19"), nullCount = Some(1)))(
    LessThan(col("int"), lit(20))
  )
  misses("perhaps a null", stats("int", Some("10"), Some("19"), nullCount = None))(
    LessThan(col("int"), lit(20))
  )
  misses("a null under NOT", stats("int", Some("10"), Some("19"), nullCount = Some(1)))(
    Not(EqualTo(col("int"), lit(5)))
  )
  misses("a null that the list cannot exclude", ints)(
    Not(In(col("int"), Seq(lit(5), Literal(null, IntegerType))))
  )
  misses("a comparison with null", ints)(EqualTo(col("int"), Literal(null, IntegerType)))
  misses("a NaN above the bounds", between("double", "1.0", "2.0"))(
    LessThan(col("double"), lit(3.0))
  )
  hits("NaN is above as well", between("double", "1.0", "2.0"))(
    GreaterThan(col("double"), lit(0.5))
  )
  misses("a string that was cut", between("string", "\"aaaa\"", "\"aaab\""))(
    EqualTo(col("string"), string("aaaa"))
  )
  misses("what may fail on a row", ints)(
    LessThan(Divide(Cast(col("int"), DoubleType), col("double")), lit(1e9))
  )
  misses("what may be null by itself", ints)(
    Not(EqualTo(If(LessThan(col("int"), lit(15)), Literal(null, IntegerType), lit(1)), lit(2)))
  )
  misses("chance", ints)(LessThan(Rand(lit(1L)), lit(2.0)))
  misses("another partition", of(FileStats(null), "b"))(EqualTo(col("p"), lit("a")))
  misses("the partition of null", of(FileStats(null), null))(Not(EqualTo(col("p"), lit("a"))))
  misses("an error over partition values", of(FileStats(null), "a"))(
    LessThan(Cast(col("p"), IntegerType, Some("UTC"), EvalMode.ANSI), lit(5))
  )
}
