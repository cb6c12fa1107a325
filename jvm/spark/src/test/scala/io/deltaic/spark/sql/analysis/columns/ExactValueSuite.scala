package io.deltaic.spark.sql.analysis.columns

import java.time.{Instant, LocalDate, LocalDateTime}

import munit.FunSuite
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{
  GenerateMutableProjection,
  GenerateUnsafeProjection
}
import org.apache.spark.sql.catalyst.{CatalystTypeConverters, InternalRow}
import org.apache.spark.sql.types._

import io.deltaic.protocol.DeltaicThrowable

/** Values that a cast must not truncate, interpreted and in generated code. */
class ExactValueSuite extends FunSuite {

  private def row(value: Any, dataType: DataType): InternalRow =
    InternalRow(CatalystTypeConverters.createToCatalystConverter(dataType)(value))

  private def exact(from: DataType, to: DataType): ExactValue =
    ExactValue(BoundReference(0, from, nullable = true), to, Some("America/Los_Angeles"), "/t", "c")

  /** The results of both, as users see them. */
  private def values(expression: Expression, value: Any, from: DataType): Seq[Any] = {
    val wanted = expression.dataType
    val seen = CatalystTypeConverters.createToScalaConverter(wanted)
    val input = row(value, from)
    Seq(
      expression.eval(input),
      GenerateMutableProjection.generate(Seq(expression))(input).get(0, wanted),
      GenerateUnsafeProjection.generate(Seq(expression))(input).get(0, wanted)
    ).map(seen)
  }

  private def failures(expression: Expression, value: Any, from: DataType): Seq[DeltaicThrowable] =
    Seq[() => Any](
      () => expression.eval(row(value, from)),
      () => GenerateMutableProjection.generate(Seq(expression))(row(value, from)),
      () => GenerateUnsafeProjection.generate(Seq(expression))(row(value, from))
    ).map(way => intercept[DeltaicThrowable](way()))

  private val decimal = DecimalType(5, 2)
  private def number(text: String): java.math.BigDecimal = new java.math.BigDecimal(text)

  /** From, to, exact values with their results, values that are truncated. */
  private val cases: Seq[(DataType, DataType, Seq[(Any, Any)], Seq[Any])] = Seq(
    (DoubleType, IntegerType, Seq(2.0 -> 2, -0.0 -> 0), Seq(2.5, -0.25)),
    (DoubleType, LongType, Seq(1e15 -> 1000000000000000L), Seq(0.1)),
    (FloatType, ByteType, Seq(127.0f -> 127.toByte), Seq(1.5f)),
    (FloatType, ShortType, Seq(-300.0f -> (-300).toShort), Seq(0.5f)),
    (decimal, IntegerType, Seq(number("7.00") -> 7), Seq(number("7.01"))),
    (decimal, DecimalType(5, 1), Seq(number("7.10") -> number("7.1")), Seq(number("7.11"))),
    (
      TimestampType,
      DateType,
      Seq(Instant.parse("2024-01-02T08:00:00Z") -> LocalDate.of(2024, 1, 2)),
      Seq(Instant.parse("2024-01-02T00:00:00Z"))
    ),
    (
      TimestampNTZType,
      DateType,
      Seq(LocalDateTime.of(2024, 1, 2, 0, 0) -> LocalDate.of(2024, 1, 2)),
      Seq(LocalDateTime.of(2024, 1, 2, 0, 1))
    ),
    (
      ArrayType(DoubleType),
      ArrayType(IntegerType),
      Seq(Seq[Any](1.0, null) -> Seq[Any](1, null), Nil -> Nil),
      Seq(Seq[Any](null, 1.5))
    ),
    (
      MapType(StringType, DoubleType),
      MapType(StringType, IntegerType),
      Seq(Map[String, Any]("a" -> 1.0, "b" -> null) -> Map[String, Any]("a" -> 1, "b" -> null)),
      Seq(Map("a" -> 1.0, "b" -> 0.5))
    ),
    (
      new StructType().add("a", StringType).add("b", new StructType().add("c", DoubleType)),
      new StructType().add("a", StringType).add("b", new StructType().add("c", ShortType)),
      Seq(
        Row("x", Row(3.0)) -> Row("x", Row(3.toShort)),
        Row(null, Row(null)) -> Row(null, Row(null)),
        Row("x", null) -> Row("x", null)
      ),
      Seq(Row("x", Row(3.5)))
    )
  )

  for ((from, to, kept, cut) <- cases) {
    test(s"${from.sql} to ${to.sql}: a value that fits is the one that is cast") {
      assert(ExactValue.mayCut(from, to))
      for ((value, stored) <- kept :+ ((null: Any, null: Any)))
        assertEquals(values(exact(from, to), value, from).map(shown), Seq.fill(3)(shown(stored)))
    }

    test(s"${from.sql} to ${to.sql}: a value that is cut is an error that names table and column") {
      for {
        value <- cut
        failure <- failures(exact(from, to), value, from)
      } {
        assertEquals(failure.condition, "DELTAIC_VALUE_DOES_NOT_FIT")
        assertEquals(failure.parameters("table"), "/t")
        assertEquals(failure.parameters("column"), "c")
        assertEquals(failure.parameters("type"), to.sql)
        assert(failure.parameters("reason").contains(s"of type ${from.sql} would become"))
      }
    }
  }

  /** A converter may return java.sql dates, and sequences of another class. */
  private def shown(value: Any): String = value match {
    case elements: scala.collection.Seq[_] => elements.mkString("[", ", ", "]")
    case other => String.valueOf(other)
  }

  test("an overflow is the cast's own error, interpreted and in generated code") {
    val wide = exact(DoubleType, ByteType)
    val input = row(300.0, DoubleType)
    for (
      way <- Seq[() => Any](
        () => wide.eval(input),
        () => GenerateUnsafeProjection.generate(Seq(wide))(input)
      )
    ) assert(intercept[ArithmeticException](way()).getMessage.contains("CAST_OVERFLOW"))
  }

  test("two of them in one expression are independent") {
    val both = Add(exact(DoubleType, IntegerType), exact(DoubleType, IntegerType))
    assertEquals(values(both, 2.0, DoubleType), Seq[Any](4, 4, 4))
    assertEquals(failures(both, 2.5, DoubleType).map(_.condition).distinct.length, 1)
  }

  test("a shared cast of another column in the projection is not used") {
    val first = Cast(
      BoundReference(0, DoubleType, nullable = true),
      IntegerType,
      Some("America/Los_Angeles"),
      EvalMode.ANSI
    )
    val second = ExactValue(
      BoundReference(1, DoubleType, nullable = true),
      IntegerType,
      Some("America/Los_Angeles"),
      "/t",
      "c"
    )
    val rows = GenerateUnsafeProjection
      .generate(Seq(Add(first, first), second, second), subexpressionEliminationEnabled = true)
    val found = rows(InternalRow(5.0, 3.0))
    assertEquals(Seq(0, 1, 2).map(found.getInt), Seq(10, 3, 3))
  }
}
