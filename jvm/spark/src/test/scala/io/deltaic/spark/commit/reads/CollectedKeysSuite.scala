package io.deltaic.spark.commit.reads

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, ObjectInputStream, ObjectOutputStream}

import munit.FunSuite
import org.apache.spark.sql.catalyst.expressions.{EqualTo, Literal}
import org.apache.spark.sql.deltaic.merge.CollectedKeys
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

class CollectedKeysSuite extends FunSuite {

  private def string(value: String): UTF8String = UTF8String.fromString(value)

  private def decimal(value: String): Decimal = {
    val number = Decimal(value)
    number.changePrecision(10, 2)
    number
  }

  private val samples: Seq[(DataType, Seq[Any])] = Seq(
    (IntegerType, Seq(1, 3, Int.MinValue, 7)),
    (LongType, Seq(1L, Long.MaxValue)),
    (DoubleType, Seq(-0.0, Double.NaN, 2.5)),
    (FloatType, Seq(0.0f, Float.NegativeInfinity)),
    (DecimalType(10, 2), Seq(decimal("1"), decimal("1.50"))),
    (DateType, Seq(-1, 20000)),
    (StringType, Seq(string(""), string("a"), string("ä"), string("x" * 300)))
  )

  private val probes: Map[DataType, Seq[Any]] = Map(
    IntegerType -> Seq(2, 4, 8, Int.MaxValue),
    LongType -> Seq(0L, 2L),
    DoubleType -> Seq(0.0, -0.0, Double.NaN, 1.0, Double.PositiveInfinity),
    FloatType -> Seq(-0.0f, 1.0f),
    DecimalType(10, 2) -> Seq(decimal("1.00"), decimal("1.5"), decimal("2")),
    DateType -> Seq(0, 30000),
    StringType -> Seq(string("b"), string("A"), string("x" * 299))
  )

  private def holds(seen: CollectedKeys, dataType: DataType, value: Any): Boolean =
    seen.contain(Literal(value, dataType)).eval() == true

  private def sent(seen: CollectedKeys): CollectedKeys = {
    val bytes = new ByteArrayOutputStream()
    new ObjectOutputStream(bytes).writeObject(seen.value)
    new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray)).readObject()
    seen.copy()
  }

  samples.foreach { case (dataType, values) =>
    test(s"of values of type ${dataType.sql}, each is found, in whichever task it was collected") {
      val (left, right) = (CollectedKeys.of(dataType), CollectedKeys.of(dataType))
      values.zipWithIndex.foreach { case (value, i) =>
        (if (i % 2 == 0) left else right).add(value)
      }
      left.add(null)
      left.merge(sent(right))
      values.foreach(value => assert(holds(left, dataType, value), value))
      for {
        probe <- probes(dataType)
        value <- values
        if EqualTo(Literal(probe, dataType), Literal(value, dataType)).eval() == true
      } assert(holds(left, dataType, probe), probe)
    }
  }

  test("few values are distinguished from those between them, many only from those out of range") {
    val few = CollectedKeys.of(IntegerType)
    Seq(1, 9).foreach(few.add)
    assert(!holds(few, IntegerType, 5))
    val many = CollectedKeys.of(IntegerType)
    (0 to 2 * CollectedKeys.MaxValues by 2).foreach(many.add)
    few.merge(many)
    assert(holds(few, IntegerType, 5))
    assert(!holds(few, IntegerType, -1) && !holds(
      few,
      IntegerType,
      2 * CollectedKeys.MaxValues + 1
    ))
  }

  test("without values, or with nulls alone, nothing matches") {
    val seen = CollectedKeys.of(StringType)
    seen.add(null)
    assert(seen.isZero && !holds(seen, StringType, string("a")))
    seen.add(string("a"))
    seen.reset()
    assert(seen.isZero && !holds(seen, StringType, string("a")))
  }

  test("a string is copied when it is collected") {
    val bytes = "abc".getBytes
    val seen = CollectedKeys.of(StringType)
    seen.add(UTF8String.fromBytes(bytes))
    bytes(0) = 'z'
    assert(holds(seen, StringType, string("abc")) && !holds(seen, StringType, string("zbc")))
  }
}
