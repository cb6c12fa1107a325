package io.deltaic.maintenance

import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.databind.JsonNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.example.data.Group
import org.apache.parquet.hadoop.ParquetReader
import org.apache.parquet.hadoop.example.GroupReadSupport

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.add
import io.deltaic.protocol.ActionJson

/** Statistics and partition values as columns. tests/peers compares them with delta-spark. */
class ParsedColumnsSuite extends munit.FunSuite {
  import ParsedType._
  import MaintenanceFixture._

  private val leaves = Seq(
    "b" -> Int8,
    "s" -> Int16,
    "i" -> Int32,
    "l" -> Int64,
    "f" -> Float32,
    "d" -> Float64,
    "d5" -> Decimal(5, 2),
    "d18" -> Decimal(18, 0),
    "d38" -> Decimal(38, 10),
    "t" -> Text,
    "day" -> Date,
    "at" -> Timestamp,
    "ntz" -> TimestampNtz
  ).map { case (name, kind) => ParsedLeaf(name, kind) }

  private val columns = leaves :+ ParsedGroup("in", Seq(ParsedLeaf("x", Int32)))

  private val counts = Seq(
    ParsedLeaf("i", Int64),
    ParsedGroup("in", Seq(ParsedLeaf("x", Int64))),
    ParsedLeaf("arr", Int64)
  )

  private val structOnly = CheckpointLayout(
    hasJsonStats = false,
    Some(StatsLayout(columns, counts, hasTightBounds = true)),
    Nil
  )

  private def stored(stats: String, layout: CheckpointLayout = structOnly): String = {
    val table = TableBuilder.created(add("a").copy(stats = Some(stats)))
    assertEquals(
      runWith(table, layout, 0, MaintenanceTask.ClassicCheckpoint(None)).failed,
      Set.empty[String]
    )
    withoutCommits(table).latest().files.stats(0)
  }

  private def json(text: String): JsonNode = ActionJson.mapper.readTree(text)

  test("bounds of every type round-trip") {
    val bounds = """{"b":-128,"s":32767,"i":-1,"l":9223372036854775807,"f":0.5,"d":-1.5E300,""" +
      """"d5":-123.45,"d18":999999999999999999,"d38":-1234567890123456789012345678.0123456789,""" +
      """"t":"ä\"€","day":"1969-12-31","at":"2024-02-29T23:59:59.123Z",""" +
      """"ntz":"0001-01-01T00:00:00.000","in":{"x":7}}"""
    val stats = s"""{"numRecords":3,"minValues":$bounds,"maxValues":$bounds,""" +
      """"nullCount":{"i":1,"in":{"x":2},"arr":0},"tightBounds":false}"""
    assertEquals(json(stored(stats)), json(stats))
  }

  test("a value that is not of its type is left out, the others stay") {
    val stats =
      """{"numRecords":1,"minValues":{"b":300,"i":"x","day":"2024-02-31","at":"yesterday","d5":12345.6,"l":4},
        |"maxValues":{"l":true,"in":5}}""".stripMargin
    assertEquals(
      json(stored(stats)),
      json("""{"numRecords":1,"minValues":{"l":4},"maxValues":{}}""")
    )
  }

  test("other spellings of a time give the same instant") {
    val stats =
      """{"numRecords":1,"minValues":{"at":"2024-01-01T05:30:00+05:30","ntz":"2024-01-01 00:00:00"}}"""
    assertEquals(
      json(stored(stats)).path("minValues"),
      json("""{"at":"2024-01-01T00:00:00.000Z","ntz":"2024-01-01T00:00:00.000"}""")
    )
  }

  test("bounds of a date column that was widened to TIMESTAMP_NTZ are midnights") {
    val stats =
      """{"numRecords":1,"minValues":{"ntz":"2024-02-29"},"maxValues":{"ntz":"2024-03-01"}}"""
    assertEquals(
      json(stored(stats)),
      json("""{"numRecords":1,"minValues":{"ntz":"2024-02-29T00:00:00.000"},
        "maxValues":{"ntz":"2024-03-01T00:00:00.000"}}""")
    )
  }

  test("bounds with more digits than the type are widened, never narrowed") {
    val stats = """{"numRecords":1,"minValues":{"d5":1.239},"maxValues":{"d5":1.231}}"""
    assertEquals(
      json(stored(stats)),
      json("""{"numRecords":1,"minValues":{"d5":1.23},"maxValues":{"d5":1.24}}""")
    )
  }

  test(
    "bounds of a double column that was float enclose both the float and the double"
  ) {
    val widened = structOnly.copy(stats =
      Some(StatsLayout(Seq(ParsedLeaf("d", WidenedFloat)), Nil, hasTightBounds = true))
    )
    def bounds(min: String, max: String): JsonNode =
      json(s"""{"numRecords":1,"minValues":{"d":$min},"maxValues":{"d":$max}}""")
    def check(min: Any, max: Any)(lower: Any, upper: Any): Unit =
      assertEquals(
        json(stored(s"${bounds(s"$min", s"$max")}", widened)),
        bounds(s"$lower", s"$upper")
      )
    check(0.1, 0.1)(0.1, 0.1f.toDouble)
    check(-0.1, 0.7)(-0.1f.toDouble, 0.7)
    check(0.5, 2)(0.5, 2.0)
    check(-1e300, 1e300)(-1e300, 1e300)
  }

  test("statistics that are not JSON are left out of the columns, and retained as a string") {
    assertEquals(stored("{not json"), null)
    assertEquals(stored("{not json", structOnly.copy(hasJsonStats = true)), "{not json")
  }

  test("partition values are columns of their own type, unless one cannot be parsed") {
    val number = PartitionLayout("n", Int32, _.toIntOption)
    val text = PartitionLayout("t", Bytes, t => Some(t.getBytes(UTF_8)))
    val table = TableBuilder.created(
      add("a").copy(partitionValues = Map("n" -> "5", "t" -> null)),
      add("b").copy(partitionValues = Map("n" -> "five", "t" -> "x"))
    )
    val layout = CheckpointLayout(hasJsonStats = true, None, Seq(number, text))
    runWith(table, layout, 0, MaintenanceTask.ClassicCheckpoint(None))
    val rows = groups(table).filter(_.getFieldRepetitionCount("add") == 1).map(_.getGroup("add", 0))
    val parsed = rows.map { row =>
      row.getString("path", 0) -> row.getFieldRepetitionCount("partitionValues_parsed")
    }
    assertEquals(parsed.toMap, Map("a" -> 1, "b" -> 0))
    val values = rows.head.getGroup("partitionValues_parsed", 0)
    assertEquals(values.getInteger("n", 0), 5)
    assertEquals(values.getFieldRepetitionCount("t"), 0)
  }

  private def groups(table: TableBuilder): Seq[Group] = {
    val file = new Path(table.log.resolve(checkpoints(table).head).toUri)
    val reader =
      ParquetReader.builder(new GroupReadSupport, file).withConf(new Configuration).build()
    try Iterator.continually(reader.read()).takeWhile(_ != null).toVector
    finally reader.close()
  }
}
