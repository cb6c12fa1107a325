package io.deltaic.spark.curve

import scala.util.Random

import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.catalyst.expressions.{BoundReference, GenericInternalRow}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The interpreted and the generated form of the expressions, on the same values, against a count of boundaries. */
class RangeIdSuite extends munit.FunSuite {

  private def values(dataType: DataType, random: Random): Seq[Any] = {
    def pick[A](special: A*)(other: => A): A =
      if (random.nextInt(4) == 0) special(random.nextInt(special.size)) else other
    Seq.fill(300)(dataType match {
      case _ if random.nextInt(10) == 0 => null
      case ByteType => random.nextInt().toByte
      case ShortType => random.nextInt().toShort
      case IntegerType | DateType => pick(Int.MinValue, 0, Int.MaxValue)(random.nextInt(50))
      case LongType | TimestampType | TimestampNTZType =>
        pick(Long.MinValue, 0L, Long.MaxValue)(random.nextLong())
      case FloatType => pick(Float.NaN, -0.0f, 0.0f, Float.NegativeInfinity)(random.nextFloat())
      case DoubleType =>
        pick(Double.NaN, -0.0, 0.0, Double.PositiveInfinity)(random.nextGaussian())
      case d: DecimalType => Decimal(BigDecimal(BigInt(40, random), d.scale), d.precision, d.scale)
      case _: StringType =>
        UTF8String.fromString(pick("", "a", "A", "ä", "\uD83D\uDE00")(random.nextString(3)))
      case _ => random.nextBoolean()
    })
  }

  private val types = Seq(
    ByteType,
    ShortType,
    IntegerType,
    LongType,
    FloatType,
    DoubleType,
    DecimalType(18, 2),
    DecimalType(38, 10),
    StringType,
    StringType("UTF8_LCASE"),
    DateType,
    TimestampType,
    TimestampNTZType,
    BooleanType
  )

  for (dataType <- types) test(s"the range of a value of type ${dataType.sql}") {
    val random = new Random(dataType.sql.hashCode)
    val all = values(dataType, random)
    val (nulls, others) = all.partition(_ == null)
    val ordering = RangeBoundaries.ordering(dataType)
    for (numRanges <- Seq(1, 2, 7, 256)) {
      val boundaries =
        RangeBoundaries.between(nulls.size, others.sorted(ordering).toIndexedSeq, numRanges)
      val id = RangeId(BoundReference(0, dataType, nullable = true), boundaries)
      val generated = GenerateUnsafeProjection.generate(Seq(id))
      val ids = all.map { value =>
        val row = new GenericInternalRow(Array[Any](value))
        val expected =
          if (value == null) 0
          else boundaries.first + boundaries.values.count(ordering.lt(_, value))
        assertEquals(id.eval(row), expected)
        assertEquals(generated(row).getInt(0), expected)
        expected
      }
      assert(ids.forall(id => id >= 0 && id < numRanges), ids)
      // Each range has its share of the rows, unless a value has more than that alone.
      val most = all.groupBy(value => value).values.map(_.size).max
      val sizes = ids.groupBy(identity).values.map(_.size)
      assert(sizes.forall(_ <= all.size / numRanges + 1 + most), s"$sizes, $most")
    }
  }

  test("generated code is the same for other boundaries") {
    def code(boundaries: RangeBoundaries): String = {
      val context = new org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext
      RangeId(
        BoundReference(0, LongType, nullable = true),
        boundaries
      ).genCode(context).code.toString
    }
    assertEquals(
      code(RangeBoundaries(0, Array(1L, 2L))),
      code(RangeBoundaries(7, Array(5L)))
    )
  }

  test("positions are the same, interpreted and generated") {
    val random = new Random(1)
    val columns = Seq(LongType, DoubleType, StringType)
    val ranges = columns.map { dataType =>
      val others =
        values(dataType, random).filter(_ != null).sorted(RangeBoundaries.ordering(dataType))
      RangeBoundaries.between(0, others.toIndexedSeq, 1 << 5)
    }
    for (curve <- Seq(ZOrderCurve, HilbertCurve)) {
      val position = CurvePosition.of(
        curve,
        5,
        columns.zipWithIndex.map { case (c, i) => BoundReference(i, c, nullable = true) },
        ranges
      )
      val generated = GenerateUnsafeProjection.generate(Seq(position))
      columns.map(values(_, random)).transpose.foreach { row =>
        val internal = new GenericInternalRow(row.toArray)
        assertEquals(generated(internal).getLong(0), position.eval(internal).asInstanceOf[Long])
      }
    }
  }
}
