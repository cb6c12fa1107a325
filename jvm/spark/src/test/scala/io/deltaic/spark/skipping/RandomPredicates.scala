package io.deltaic.spark.skipping

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalacheck.Gen

/** Predicates over [[StatsTable]], with constants that its files contain or nearly contain. */
object RandomPredicates {
  import StatsTable._

  def predicate(depth: Int = 3): Gen[Expression] =
    if (depth == 0) simple
    else {
      val smaller = Gen.lzy(predicate(depth - 1))
      Gen.frequency(
        3 -> simple,
        2 -> smaller.map(Not(_)),
        2 -> Gen.zip(smaller, smaller).map { case (l, r) => And(l, r) },
        2 -> Gen.zip(smaller, smaller).map { case (l, r) => Or(l, r) }
      )
    }

  def simple: Gen[Expression] = Gen.frequency(
    6 -> onColumn,
    2 -> onCast,
    3 -> onFunction,
    2 -> onCoalesce,
    2 -> onPartition,
    1 -> Gen.oneOf(Literal(true), Literal(false), Literal(null, BooleanType), col("bool")),
    2 -> onTwoColumns
  )

  private def onTwoColumns: Gen[Expression] = for {
    (left, right) <- Gen.oneOf(
      col("int") -> cast("byte", IntegerType),
      col("int") -> col("nest.n"),
      col("nest.n") -> col("nest.n"),
      cast("int", DoubleType) -> col("double"),
      col("double") -> cast("float", DoubleType),
      col("double") -> cast("dec", DoubleType),
      col("string") -> col("nest.deep.s"),
      col("date") -> cast("ts", DateType),
      col("ts") -> cast("date", TimestampType),
      cast("dec", DecimalType(38, 10)) -> col("big"),
      col("long") -> cast("int", LongType),
      col("bool") -> col("bool"),
      col("int") -> Add(col("nest.n"), lit(1)),
      col("date") -> DateAdd(col("date"), lit(1))
    )
    make <- Gen.oneOf(comparisons)
    negated <- Gen.oneOf(true, false)
  } yield if (negated) Not(make(right, left)) else make(left, right)

  private def constant(dataType: DataType): Gen[Literal] = Gen.frequency(
    1 -> Gen.const(Literal(null, dataType)),
    12 -> Gen.oneOf(RandomFiles.values(dataType)).map(Literal(_, dataType))
  )

  private def onColumn: Gen[Expression] = Gen.oneOf(RandomFiles.leafPaths).flatMap(onColumn)

  def onColumn(path: String): Gen[Expression] = {
    val column = col(path)
    val simple = column.dataType match {
      case BinaryType => nullness(column)
      case StringType =>
        Gen.oneOf(comparison(column), list(column), nullness(column), prefix(column))
      case _ => Gen.oneOf(comparison(column), comparison(column), list(column), nullness(column))
    }
    Gen.zip(simple, Gen.oneOf(true, false)).map { case (p, negated) => if (negated) Not(p) else p }
  }

  private val comparisons: Seq[(Expression, Expression) => Expression] = Seq(
    EqualTo(_, _),
    EqualNullSafe(_, _),
    LessThan(_, _),
    LessThanOrEqual(_, _),
    GreaterThan(_, _),
    GreaterThanOrEqual(_, _)
  )

  private def comparison(column: Expression): Gen[Expression] =
    comparison(column, constant(column.dataType))

  private def comparison(column: Expression, values: Gen[Literal]): Gen[Expression] = for {
    value <- values
    swapped <- Gen.oneOf(true, false)
    make <- Gen.oneOf(comparisons)
  } yield if (swapped) make(value, column) else make(column, value)

  private def list(column: Expression): Gen[Expression] = list(column, constant(column.dataType))

  private def list(column: Expression, value: Gen[Literal]): Gen[Expression] = for {
    values <- Gen.choose(0, 4).flatMap(Gen.listOfN(_, value))
    asSet <- Gen.oneOf(true, false)
  } yield if (asSet) InSet(column, values.map(_.value).toSet) else In(column, values)

  private def nullness(column: Expression): Gen[Expression] =
    Gen.oneOf(IsNull(column), IsNotNull(column))

  private def prefix(column: Expression): Gen[Expression] = {
    val strings =
      Gen.oneOf("", "a", "ab", "abcd", "abc\ud83d", "abc\ud83d\ude00", "\u00e9", "\udbff\udfff")
    Gen.oneOf(
      strings.map(t => StartsWith(column, Literal(UTF8String.fromString(t), StringType))),
      Gen.oneOf("a%", "ab_", "abcd%e", "%", "_bc", "abc\\%", "", "ab").map { pattern =>
        Like(column, Literal(UTF8String.fromString(pattern), StringType), '\\')
      }
    )
  }

  private def cast(path: String, to: DataType, zone: String = "America/St_Johns"): Cast =
    Cast(col(path), to, Some(zone), EvalMode.ANSI)

  private def onCast: Gen[Expression] = Gen
    .oneOf(
      cast("byte", IntegerType),
      cast("int", LongType),
      cast("int", DoubleType),
      cast("long", FloatType),
      cast("long", DoubleType),
      cast("float", DoubleType),
      cast("int", DecimalType(38, 10)),
      cast("dec", DecimalType(38, 10)),
      cast("dec", DoubleType),
      cast("date", TimestampType),
      cast("date", TimestampNTZType),
      cast("ts", DateType),
      cast("ts", DateType, "Pacific/Kiritimati"),
      cast("ntz", DateType),
      cast("ntz", TimestampType),
      cast("ts", TimestampNTZType)
    )
    .flatMap(c => Gen.oneOf(comparison(c), comparison(c), list(c), nullness(c)))

  /** With constants that the function returns for values of the files. */
  def onFunction: Gen[Expression] = for {
    f <- RandomFunctions.function
    value = Gen.frequency(3 -> RandomFunctions.result(f), 1 -> constant(f.dataType))
    predicate <- Gen.oneOf(comparison(f, value), comparison(f, value), list(f, value), nullness(f))
    negated <- Gen.oneOf(true, false)
  } yield if (negated) Not(predicate) else predicate

  /** Of columns and functions of one type, and perhaps a constant at the end. */
  private def onCoalesce: Gen[Expression] = for {
    first <- Gen.oneOf(
      Gen.oneOf(RandomFiles.leafPaths.filter(_ != "binary")).map(col),
      RandomFunctions.function
    )
    same = RandomFiles.leafPaths.map(col).filter(_.dataType == first.dataType)
    others <- Gen.someOf(same)
    last <- Gen.option(constant(first.dataType))
    choice = Coalesce(first +: others.toSeq ++: last.toSeq)
    predicate <- Gen.oneOf(comparison(choice), list(choice), nullness(choice))
    negated <- Gen.oneOf(true, false)
  } yield if (negated) Not(predicate) else predicate

  private def onPartition: Gen[Expression] = Gen.oneOf(
    Gen.oneOf("a", "b", "12").map(v => EqualTo(col("p"), lit(v))),
    Gen.oneOf("a", "b").map(v => GreaterThan(Concat(Seq(col("p"), lit("x"))), lit(v))),
    Gen.oneOf(1, 2, -5).map(v => LessThanOrEqual(Add(col("q"), lit(1)), lit(v))),
    Gen.oneOf(1, 2).map(v => Not(In(col("q"), Seq(lit(v), Literal(null, IntegerType))))),
    nullness(col("p")),
    Gen.const(EqualTo(Cast(col("p"), IntegerType, None, EvalMode.ANSI), lit(12)))
  )
}
