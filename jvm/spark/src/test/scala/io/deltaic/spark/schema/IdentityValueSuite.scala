package io.deltaic.spark.schema

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection

import io.deltaic.protocol.DeltaicThrowable

class IdentityValueSuite extends munit.FunSuite {

  private def column(start: Long, step: Long, mark: Option[Long]): IdentityColumn =
    IdentityColumn("id", start, step, allowExplicitInsert = false, mark)

  private def interpreted(value: IdentityValue, n: Int): Seq[Long] =
    Seq.fill(n)(value.eval(InternalRow.empty).asInstanceOf[Long])

  private def generated(value: IdentityValue, n: Int): Seq[Long] = {
    val projection = GenerateUnsafeProjection.generate(Seq(value))
    projection.initialize(0)
    Seq.fill(n)(projection(InternalRow.empty).getLong(0))
  }

  // Protocol: identity-columns-10
  test("generated code returns the same values as eval") {
    for {
      first <- Seq(1L, -7L, Long.MaxValue - 100)
      step <- Seq(1L, -3L, 9L)
      lanes <- Seq(1, 3)
      lane <- 0 until lanes
    } {
      val value = IdentityValue("t", "id", first, step, lane, lanes)
      val expected = (0 until 4).map(n => first + step * (lane + n.toLong * lanes))
      assertEquals(interpreted(value, 4), expected)
      assertEquals(generated(value.copy(), 4), expected)
    }
  }

  test("lanes of one statement never return the same value") {
    val lanes = (0 until 4).map(lane => IdentityValue("t", "id", 5, 2, lane, 4))
    val values = lanes.flatMap(interpreted(_, 50))
    assertEquals(values.distinct.size, values.size)
  }

  // Protocol: identity-columns-10, identity-columns-11
  test("the next value is the first of the sequence beyond the high-water mark") {
    assertEquals(column(5, 3, None).next("t"), 5L)
    assertEquals(column(5, 3, Some(5)).next("t"), 8L)
    assertEquals(column(5, 3, Some(7)).next("t"), 8L)
    assertEquals(column(5, 3, Some(-100)).next("t"), 5L)
    assertEquals(column(5, -3, Some(5)).next("t"), 2L)
    assertEquals(column(5, -3, Some(1)).next("t"), -1L)
    assertEquals(column(5, -3, Some(100)).next("t"), 5L)
    assertEquals(column(Long.MinValue, 1, Some(Long.MaxValue - 1)).next("t"), Long.MaxValue)
  }

  // Protocol: identity-columns-12
  test("an overflow is an error, and never wraps around") {
    intercept[DeltaicThrowable](column(1, 1, Some(Long.MaxValue)).next("t"))
    intercept[DeltaicThrowable](column(0, -1, Some(Long.MinValue)).next("t"))
    val last = IdentityValue("t", "id", Long.MaxValue, 1)
    assertEquals(interpreted(last, 1), Seq(Long.MaxValue))
    intercept[DeltaicThrowable](interpreted(last, 1))
    intercept[DeltaicThrowable](generated(last.copy(), 2))
  }
}
