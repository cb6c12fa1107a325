package io.deltaic.spark.skipping

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.scalacheck.Gen

/** Functions of columns of [[StatsTable]], monotone ones and nearly monotone ones. */
object RandomFunctions {
  import StatsTable._

  private val zones =
    Gen.oneOf("UTC", "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu", "Australia/Lord_Howe")

  private val modes = Gen.oneOf(EvalMode.ANSI, EvalMode.LEGACY, EvalMode.TRY)

  def function: Gen[Expression] = Gen.oneOf(arithmetic, dates, timestamps, casts, prefixes)

  /** The result of `f` for some values of its columns; null if it fails. */
  def result(f: Expression): Gen[Literal] = {
    val columns = f.collect {
      case a: Attribute => a
      case g: GetStructField => g
    }
    val values = columns.filterNot(_.dataType.isInstanceOf[StructType]).map { c =>
      Gen.oneOf(RandomFiles.values(c.dataType)).map(v => c -> Literal(v, c.dataType))
    }
    Gen.sequence[Seq[(Expression, Literal)], (Expression, Literal)](values).map { known =>
      val evaluated = f.transformDown {
        case c: Expression if known.exists(_._1 == c) => known.find(_._1 == c).get._2
      }
      Literal(Try(evaluated.eval()).getOrElse(null), f.dataType)
    }
  }

  private def numbers: Gen[Expression] =
    Gen.oneOf("byte", "int", "long", "float", "double", "nest.n", "dec").map(col)

  private def arithmetic: Gen[Expression] = for {
    column <- numbers
    value <- Gen.oneOf(RandomFiles.values(column.dataType)).map(Literal(_, column.dataType))
    mode <- modes.map(NumericEvalContext(_))
    swapped <- Gen.oneOf(true, false)
    (l, r) = if (swapped) (value, column) else (column, value)
    whole = Seq(ByteType, IntegerType, LongType).contains(l.dataType)
    divided = if (whole) (Cast(l, LongType), Cast(r, LongType))
    else (Cast(l, DoubleType), Cast(r, DoubleType))
    found <- Gen.oneOf(
      Add(l, r, mode),
      Subtract(l, r, mode),
      Multiply(l, r, mode),
      UnaryMinus(column, failOnError = mode.evalMode == EvalMode.ANSI),
      if (divided._1.dataType == LongType) IntegralDivide(divided._1, divided._2, mode)
      else Divide(divided._1, divided._2, mode)
    )
  } yield found

  private def dates: Gen[Expression] = for {
    zone <- zones
    date <- Gen.oneOf(col("date"), Cast(col("ts"), DateType, Some(zone)))
    days <- Gen.oneOf(0, 1, -1, 400)
    unit <- Gen.oneOf("week", "month", "quarter", "year", "day")
    found <- Gen.oneOf(
      Year(date),
      TruncDate(date, lit(unit)),
      DateAdd(date, lit(days)),
      DateSub(date, lit(days)),
      Year(DateAdd(date, lit(days))),
      Cast(date, StringType),
      Cast(DateAdd(date, lit(days)), StringType)
    )
  } yield found

  private def timestamps: Gen[Expression] = for {
    zone <- zones
    time <- Gen.oneOf(col("ts"), Cast(col("date"), TimestampType, Some(zone)))
    unit <- Gen.oneOf("microsecond", "SECOND", "minute", "hour", "dd", "week", "mon", "Year", "eon")
  } yield TruncTimestamp(lit(unit), time, Some(zone))

  private def casts: Gen[Expression] = for {
    from <- Gen.oneOf("int", "long", "double", "dec", "byte").map(col)
    to <- Gen.oneOf(ByteType, IntegerType, LongType, FloatType, StringType)
    mode <- modes
  } yield Cast(from, to, Some("UTC"), mode)

  private def prefixes: Gen[Expression] = for {
    start <- Gen.oneOf(0, 1, 2, -2)
    length <- Gen.oneOf(0, 1, 3, -1)
  } yield Substring(col("string"), lit(start), lit(length))
}
