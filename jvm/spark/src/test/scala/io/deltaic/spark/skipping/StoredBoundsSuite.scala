package io.deltaic.spark.skipping

import munit.FunSuite
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

import io.deltaic.spark.schema.SkippingSchema

/**
 * How strings in statistics become bounds: truncation is compensated, invalid values are unknown.
 */
class StoredBoundsSuite extends FunSuite {
  import StatsTable._

  private def skips(file: FileStats, filter: Expression): Boolean =
    select(columns(file), filter).isEmpty

  private def equalTo(path: String, string: String): Expression = {
    val column = col(path)
    EqualTo(column, typed(string, column.dataType))
  }

  private def checkRange(path: String, min: String, max: String)(outside: String*)(inside: String*)(
      implicit loc: munit.Location
  ): Unit = test(s"$path in $min to $max") {
    val file = between(path, min, max)
    outside.foreach(v => assert(skips(file, equalTo(path, v)), s"$v is outside"))
    inside.foreach(v => assert(!skips(file, equalTo(path, v)), s"$v is inside"))
  }

  private def checkUnknown(path: String, stored: String, value: String)(implicit
      loc: munit.Location
  ): Unit = test(s"$path: $stored is not known") {
    assert(!skips(between(path, stored, stored), equalTo(path, value)))
  }

  checkRange("byte", "-3", "5")("-4", "6")("-3", "5")
  checkRange("long", Long.MinValue.toString, "5")("6")(Long.MinValue.toString)
  checkRange("float", "1.1", "2.2")("1.0999999", "2.2000003")("1.1", "2.2")
  checkRange("float", "1.100000023841858", "2.200000047683716")("1.0", "2.3")("1.1", "2.2")
  checkRange("double", "\"-Infinity\"", "3")("3.1")("-1e300", "3")
  checkRange("date", "\"2024-02-28\"", "\"2024-03-01\"")("2024-02-27", "2024-03-02")(
    "2024-02-28",
    "2024-03-01"
  )
  checkRange("ts", "\"2024-02-28T10:00:00.123Z\"", "\"2024-02-28T12:00:00.500+02:00\"")(
    "2024-02-28 10:00:00.122999Z",
    "2024-02-28 10:00:00.501Z"
  )("2024-02-28 10:00:00.123Z", "2024-02-28 10:00:00.500999Z")
  checkRange("ts", "\"2024-02-28T10:00:00Z\"", "\"2024-02-28T10:00:00.123456789Z\"")(
    "2024-02-28 09:59:59Z",
    "2024-02-28 10:00:01Z"
  )("2024-02-28 10:00:00.123457Z")
  checkRange("ts", "\"1969-12-31T23:59:59.000Z\"", "\"1970-01-01T00:00:00.000Z\"")(
    "1969-12-31 23:58:00Z",
    "1970-01-01 00:02:00Z"
  )("1969-12-31 23:58:59.999001Z")
  checkRange("ntz", "\"2024-02-28T10:00:00.123\"", "\"2024-02-28T11:00:00.000Z\"")(
    "2024-02-28 10:00:00.122",
    "2024-02-28 11:00:00.001"
  )("2024-02-28 10:00:00.123", "2024-02-28 11:00:00.000999")
  checkRange("ntz", "\"2024-02-28\"", "\"2024-02-29\"")(
    "2024-02-27 23:59:59",
    "2024-02-29 01:00:00"
  )(
    "2024-02-29 00:00:00"
  )
  checkRange("dec", "-1.50", "3.141")("-1.51", "3.16")("-1.50", "3.15")
  checkRange("big", "1.0000000001", "123456789012345678901234.5")(
    "0.9999999999",
    "123456789012346678901234.5"
  )(
    "1.0000000001",
    "123456789012345678901234.5000000001"
  )
  checkRange("string", "\"ab\"", "\"z\"")("aa", "z0", "\u00e9")("ab", "abc", "yy")
  checkRange("bool", "true", "true")("false")("true")

  test("a decimal that went through a double is widened by the double's error") {
    val file = between("big", "12345678901234567890", "12345678901234567890")
    assert(!skips(file, equalTo("big", "12345678901234567891.5")))
    assert(skips(file, equalTo("big", "12345678901235567890")))
  }

  test("a double column that held floats uses the float that the string represents") {
    def table(metadata: Metadata): Int = {
      val schema = new StructType().add("d", DoubleType, nullable = true, metadata)
      val file =
        ListedFileStats(Vector(FileStats("""{"minValues":{"d":0.1},"maxValues":{"d":0.1}}""")))
      val filter = EqualTo(AttributeReference("d", DoubleType)(), lit(0.1f.toDouble))
      FileSelection.select(
        new FileStatsColumns(file, new SkippingSchema(schema, Nil), parser),
        Seq(filter)
      ).files.length
    }
    val widened =
      Metadata.fromJson("""{"delta.typeChanges":[{"fromType":"float","toType":"double"}]}""")
    assertEquals(table(widened), 1)
    assertEquals(table(Metadata.empty), 0)
  }

  checkUnknown("byte", "300", "1")
  checkUnknown("int", "5.0", "1")
  checkUnknown("int", "\"5\"", "1")
  checkUnknown("int", "null", "1")
  checkUnknown("int", "{\"a\":1}", "1")
  checkUnknown("int", "[5]", "1")
  checkUnknown("long", "99999999999999999999", "1")
  checkUnknown("float", "1e300", "1.0")
  checkUnknown("double", "\"x\"", "1.0")
  checkUnknown("date", "\"2024-02-30\"", "2024-01-01")
  checkUnknown("date", "\"2024-2-3\"", "2024-01-01")
  checkUnknown("date", "\"+12024-02-03\"", "2024-01-01")
  checkUnknown("ts", "\"2024-02-28T10:00:00.123\"", "2024-01-01 00:00:00Z")
  checkUnknown("ts", "\"2024-02-28T10:00:00.123 UTC\"", "2024-01-01 00:00:00Z")
  checkUnknown("ts", "\"2024-02-28T25:00:00.123Z\"", "2024-01-01 00:00:00Z")
  checkUnknown("ts", "\"2024-02-28T10:00:00.Z\"", "2024-01-01 00:00:00Z")
  checkUnknown("ts", "\"2024-02-28T10:00:00.1x3Z\"", "2024-01-01 00:00:00Z")
  checkUnknown("ts", "\"\"", "2024-01-01 00:00:00Z")
  checkUnknown("ts", "\"2024\"", "2024-01-01 00:00:00Z")
  checkUnknown("ntz", "\"2024-02-28T10:00:00+05:00\"", "2024-01-01 00:00:00")
  checkUnknown("dec", "\"1.5\"", "1.0")
  checkUnknown("dec", "123456789.5", "1.0")
  checkUnknown("dec", "1e-500", "1.0")
  checkUnknown("big", "1e900000000", "1.0")
  checkUnknown("string", "\"\ufffd\"", "a")
  checkUnknown("string", "\"ab\\ud83d\"", "a")
  checkUnknown("bool", "\"true\"", "false")
  checkUnknown("bool", "1", "false")

  private val cutOff = Seq(
    "",
    "null",
    "[]",
    "7",
    "{",
    """{"minValues":5}""",
    """{"minValues":{"x_int":10""",
    """{"minValues":{"x_int":10},"maxValues":{"x_int":20},"numRecords"""",
    """{"minValues":{"x_int":10},"maxValues":{"x_int":20} oops""",
    """{"minValues":{"int":10},"maxValues":{"int":20}}""",
    """{"nullCount":{"x_int":-1},"numRecords":-1}"""
  )
  cutOff.foreach { json =>
    test(s"unreadable statistics do not skip the file: $json") {
      val file = FileStats(json)
      assert(!skips(file, EqualTo(col("int"), lit(5))))
      assert(!skips(file, IsNotNull(col("int"))))
      assert(!skips(file, EqualTo(col("nest.n"), lit(5))))
    }
  }

  test("fields that were not requested are ignored") {
    val json =
      """{"other":[{"a":[1,2]}],"numRecords":3,"minValues":{"x_list":[1],
      "x_nest":{"x_deep":{"x_s":"a"},"x_n":10,"z":{}},"x_int":1},
      "maxValues":{"x_nest":{"x_n":20}},"nullCount":{"x_nest":{"x_n":0}}}"""
    assert(skips(FileStats(json), equalTo("nest.n", "9")))
    assert(!skips(FileStats(json), equalTo("nest.n", "10")))
  }

  test("totals of a file") {
    val table = columns(
      FileStats("""{"numRecords":12,"tightBounds":false}"""),
      FileStats("{}", hasDeletionVector = true),
      FileStats(null)
    )
    assertEquals((0 to 2).map(table.numRecords), Seq(Some(12L), None, None))
    assertEquals((0 to 2).map(table.tightBounds), Seq(false, false, true))
  }
}
