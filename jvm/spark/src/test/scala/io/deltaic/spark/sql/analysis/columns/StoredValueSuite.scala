package io.deltaic.spark.sql.analysis.columns

import munit.FunSuite
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{
  GenerateMutableProjection,
  GenerateUnsafeProjection
}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.protocol.DeltaicThrowable

/** Values for columns, interpreted and in generated code. */
class StoredValueSuite extends FunSuite {

  private val text = BoundReference(0, StringType, nullable = true)
  private val asInt = StoredValue(Cast(text, IntegerType, None, EvalMode.ANSI), "/t", "s.a")
  private val asByte = StoredValue(
    Cast(BoundReference(0, IntegerType, nullable = true), ByteType, None, EvalMode.ANSI),
    "/t",
    "b"
  )

  private def row(value: Any): InternalRow = InternalRow(value match {
    case s: String => UTF8String.fromString(s)
    case other => other
  })

  /** The results of both. */
  private def values(expression: Expression, value: Any): Seq[Any] = {
    val generated = GenerateMutableProjection.generate(Seq(expression))(row(value))
    Seq(expression.eval(row(value)), generated.get(0, expression.dataType))
  }

  private def failures(expression: Expression, value: Any): Seq[DeltaicThrowable] = Seq(
    intercept[DeltaicThrowable](expression.eval(row(value))),
    intercept[DeltaicThrowable](GenerateUnsafeProjection.generate(Seq(expression))(row(value)))
  )

  test("a value that fits is the cast value") {
    assertEquals(values(asInt, " 12 "), Seq[Any](12, 12))
    assertEquals(values(asInt, null), Seq[Any](null, null))
    assertEquals(values(asByte, -128), Seq[Any](-128.toByte, -128.toByte))
  }

  test("a value that does not fit is an error that names table, column and value") {
    for {
      (expression, value, column, reason) <- Seq(
        (asInt, "x", "s.a", "'x'"),
        (asInt, "3000000000", "s.a", "3000000000"),
        (asByte, 300, "b", "300")
      )
      failure <- failures(expression, value)
    } {
      assertEquals(failure.condition, "DELTAIC_VALUE_DOES_NOT_FIT")
      assertEquals(failure.parameters("table"), "/t")
      assertEquals(failure.parameters("column"), column)
      assert(failure.parameters("reason").contains(reason), failure.parameters("reason"))
    }
  }

  test("an error that is not about the value is unchanged") {
    val failing = StoredValue(RaiseError(Literal("mine")), "/t", "c")
    for (run <- Seq(() => failing.eval(row("x")), () => values(failing, "x")))
      assert(intercept[RuntimeException](run()).getMessage.contains("mine"))
  }

  test("a null for a NOT NULL column is an error that names table and column") {
    val required = RequiredValue(text, "/t", "s.a")
    assert(!required.nullable)
    assertEquals(values(required, "x").map(_.toString), Seq("x", "x"))
    for (failure <- failures(required, null)) {
      assertEquals(failure.condition, "DELTAIC_NOT_NULL_VIOLATED")
      assertEquals(failure.parameters, Map("table" -> "/t", "column" -> "s.a"))
    }
  }
}
