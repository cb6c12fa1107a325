package io.deltaic.spark.schema

import java.nio.charset.StandardCharsets
import java.time.{ZoneId, ZoneOffset}

import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalacheck.Gen
import org.scalacheck.Prop._

import io.deltaic.protocol.DeltaicThrowable

class PartitionValuesSuite extends munit.ScalaCheckSuite {
  private val utc: ZoneId = ZoneOffset.UTC
  private val berlin = ZoneId.of("Europe/Berlin")

  private def toLog(dataType: DataType, value: Any): String =
    PartitionValues.toLog("p", dataType, value)

  private def fromLog(dataType: DataType, string: String, zone: ZoneId = utc): Any =
    PartitionValues.fromLog("p", dataType, string, zone)

  private def bytes(string: String): Array[Byte] = string.getBytes(StandardCharsets.UTF_8)

  private val spellings: Seq[(DataType, Any, String)] = Seq(
    (StringType, UTF8String.fromString("a b/c%ü"), "a b/c%ü"),
    (VarcharType(9), UTF8String.fromString("x"), "x"),
    (ByteType, -128.toByte, "-128"),
    (ShortType, 32767.toShort, "32767"),
    (IntegerType, -1, "-1"),
    (LongType, Long.MinValue, "-9223372036854775808"),
    (FloatType, 1.5f, "1.5"),
    (DoubleType, 1e300, "1.0E300"),
    (DoubleType, Double.NegativeInfinity, "-Infinity"),
    (DoubleType, -0.0d, "-0.0"),
    (DecimalType(12, 2), Decimal(BigDecimal("-123.40"), 12, 2), "-123.40"),
    (DecimalType(38, 18), Decimal(BigDecimal("0E-18"), 38, 18), "0.000000000000000000"),
    (BooleanType, true, "true"),
    (BooleanType, false, "false"),
    (DateType, 0, "1970-01-01"),
    (DateType, -719162, "0001-01-01"),
    (TimestampType, 123456L, "1970-01-01T00:00:00.123456Z"),
    (TimestampType, 0L, "1970-01-01T00:00:00.000000Z"),
    (TimestampType, -1L, "1969-12-31T23:59:59.999999Z"),
    (TimestampNTZType, 0L, "1970-01-01 00:00:00"),
    (TimestampNTZType, 123456L, "1970-01-01 00:00:00.123456"),
    (TimestampNTZType, -1L, "1969-12-31 23:59:59.999999")
  )

  spellings.foreach { case (dataType, value, string) =>
    // Protocol: primitive-types-2
    test(s"a ${dataType.sql} is written as '$string' and read back, in any time zone") {
      assertEquals(toLog(dataType, value), string)
      assertEquals(fromLog(dataType, string, utc), value)
      assertEquals(fromLog(dataType, string, berlin), value)
    }
  }

  test("NaN is read back as NaN") {
    assertEquals(toLog(DoubleType, Double.NaN), "NaN")
    assert(fromLog(DoubleType, "NaN").asInstanceOf[Double].isNaN)
    assert(fromLog(FloatType, "nan").asInstanceOf[Float].isNaN)
  }

  test("binary is the UTF-8 string of its bytes, as in the protocol's example") {
    assertEquals(toLog(BinaryType, Array[Byte](1, 2, 3)), "\u0001\u0002\u0003")
    val read = fromLog(BinaryType, "\u0001\u0002\u0003").asInstanceOf[Array[Byte]]
    assertEquals(read.toSeq, Seq[Byte](1, 2, 3))
    assertEquals(toLog(BinaryType, bytes("ü")), "ü")
  }

  test("null and the empty string are null partition values, whatever the type") {
    spellings.map(_._1).foreach { dataType =>
      assertEquals(toLog(dataType, null), null)
      assertEquals(fromLog(dataType, null), null)
      assertEquals(fromLog(dataType, ""), null)
    }
    assertEquals(toLog(StringType, UTF8String.EMPTY_UTF8), null)
    assertEquals(toLog(BinaryType, Array.empty[Byte]), null)
  }

  test("a timestamp without a zone is read in the session's time zone") {
    val noon = 12L * 3600 * 1000000
    assertEquals(fromLog(TimestampType, "1970-01-01 13:00:00", berlin), noon)
    assertEquals(fromLog(TimestampType, "1970-01-01 13:00:00.000001", berlin), noon + 1)
    assertEquals(fromLog(TimestampType, "1970-01-01T12:00:00Z", berlin), noon)
  }

  test("names of infinity in other writers are supported") {
    assertEquals(fromLog(DoubleType, "inf"), Double.PositiveInfinity)
    assertEquals(fromLog(FloatType, "-inf"), Float.NegativeInfinity)
  }

  test("a decimal is read at the column's scale, however many digits are spelled") {
    val expected = Decimal(BigDecimal("1.50"), 5, 2)
    assertEquals(fromLog(DecimalType(5, 2), "1.5"), expected)
    assertEquals(fromLog(DecimalType(5, 2), "1.5000"), expected)
  }

  test("a directory name that delta-spark converted is read as delta-spark reads it") {
    Seq[(DataType, String, Any)](
      (BooleanType, "1", true),
      (BooleanType, "no", false),
      (IntegerType, "1.0", 1),
      (LongType, " 7 ", 7L),
      (DecimalType(4, 2), "1.234", Decimal(BigDecimal("1.23"), 4, 2)),
      (TimestampNTZType, "1970-01-01T00:00:01Z", 1000000L)
    ).foreach { case (dataType, string, value) =>
      assertEquals(fromLog(dataType, string, berlin), value, string)
    }
  }

  Seq[(DataType, String)](
    IntegerType -> "x",
    ByteType -> "128",
    BooleanType -> "maybe",
    DateType -> "1970-13-01",
    TimestampType -> "yesterday?",
    TimestampNTZType -> "1970-01-01 00:00:61",
    DecimalType(4, 2) -> "123.45",
    ArrayType(IntegerType) -> "1"
  ).foreach { case (dataType, string) =>
    test(s"'$string' as ${dataType.sql} is rejected, naming column, value and type") {
      val error = intercept[DeltaicThrowable](fromLog(dataType, string))
      assertEquals(error.condition, "DELTAIC_INVALID_PARTITION_VALUE")
      assertEquals(
        error.parameters,
        Map("column" -> "p", "value" -> string, "type" -> dataType.sql)
      )
    }
  }

  test("bytes that are not UTF-8 are rejected instead of changed") {
    val error = intercept[DeltaicThrowable](toLog(BinaryType, Array(0xc3.toByte, 0x28.toByte)))
    assertEquals(error.condition, "DELTAIC_INVALID_PARTITION_VALUE")
  }

  private val micros = Gen.choose(-62135596800000000L, 253402300799999999L)

  property("every microsecond of the years 1 to 9999 is read back") {
    forAll(micros) { value =>
      Seq(TimestampType, TimestampNTZType).foreach { dataType =>
        assertEquals(fromLog(dataType, toLog(dataType, value), berlin), value)
      }
    }
  }

  property("every double and float is read back") {
    forAll { (d: Double, f: Float) =>
      assertEquals(fromLog(DoubleType, toLog(DoubleType, d)), d)
      assertEquals(fromLog(FloatType, toLog(FloatType, f)), f)
    }
  }

  test("a partition's directory escapes what paths cannot hold and names null as Hive does") {
    assertEquals(PartitionPaths.directory(Nil, Nil), "")
    assertEquals(PartitionPaths.directory(Seq("a", "b"), Seq("1", "x")), "a=1/b=x")
    assertEquals(PartitionPaths.directory(Seq("a"), Seq(null)), "a=__HIVE_DEFAULT_PARTITION__")
    assertEquals(PartitionPaths.directory(Seq("a=b"), Seq("x/y:z%")), "a%3Db=x%2Fy%3Az%25")
  }

  test("the log's path is a URI on top of the directory's escapes") {
    assertEquals(PartitionPaths.logPath("p=a b/f.parquet"), "p=a%20b/f.parquet")
    assertEquals(PartitionPaths.logPath("p=50%25/f.parquet"), "p=50%2525/f.parquet")
    assertEquals(PartitionPaths.logPath("p=ü/f.parquet"), "p=ü/f.parquet")
  }

  property("the log's path decodes to the file's path") {
    forAll(Gen.stringOf(Gen.oneOf(" %:/?#[]&+=;,@$!'()~^`{}|<>\"\\aü€漢".toSeq))) { value =>
      val directory = PartitionPaths.directory(Seq("p"), Seq(value))
      val relative = directory + "/f.parquet"
      val decoded = new java.net.URI(PartitionPaths.logPath(relative)).getPath
      assertEquals(decoded, new Path(relative).toString)
      assertEquals(decoded.count(_ == '/'), 1)
    }
  }
}
