package io.deltaic.spark.write.files

import java.math.{BigDecimal => JBigDecimal}
import java.nio.charset.StandardCharsets
import java.nio.file.Path
import java.time.{Instant, LocalDate, LocalDateTime, ZoneOffset}
import java.util.Arrays

import scala.util.Random

import com.fasterxml.jackson.databind.cfg.JsonNodeFeature
import com.fasterxml.jackson.databind.json.JsonMapper
import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode}
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Row}

import io.deltaic.PatientSuite
import io.deltaic.spark.util.LocalSpark

/** Statistics against Spark's own aggregates over the same rows. */
class FileStatisticsSuite extends PatientSuite with LocalSpark {
  override def beforeAll(): Unit = {
    super.beforeAll()
    spark.conf.set("spark.sql.datetime.java8API.enabled", "true")
  }

  private val json = JsonMapper
    .builder()
    .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
    .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
    .build()

  private val inner = new StructType().add("c", StringType).add("d", DoubleType)
  private val struct = new StructType().add("a", IntegerType).add("b", inner)
  private val schema = new StructType()
    .add("bool", BooleanType)
    .add("byte", ByteType)
    .add("short", ShortType)
    .add("int", IntegerType)
    .add("long", LongType)
    .add("float", FloatType)
    .add("double", DoubleType)
    .add("dec9", DecimalType(9, 2))
    .add("dec18", DecimalType(18, 4))
    .add("dec38", DecimalType(38, 10))
    .add("text", StringType)
    .add("bin", BinaryType)
    .add("date", DateType)
    .add("ts", TimestampType)
    .add("ntz", TimestampNTZType)
    .add("st", struct)
    .add("arr", ArrayType(IntegerType))
    .add("map", MapType(StringType, IntegerType))
    .add("structs", ArrayType(new StructType().add("x", IntegerType)))
    .add("deep", new StructType().add("arr", ArrayType(ArrayType(StringType))))

  /** Random values in which nulls, empty collections and awkward numbers are common. */
  private final class RandomRows(seed: Long, nullFraction: Double, awkward: Boolean) {
    private val random = new Random(seed)

    def apply(count: Int): Seq[Row] = Seq.fill(count)(structOf(schema))

    private def structOf(fields: StructType): Row =
      Row.fromSeq(fields.map(f =>
        if (random.nextDouble() < nullFraction) null else value(f.dataType)
      ))

    private def element(dataType: DataType): Any =
      if (random.nextDouble() < nullFraction) null else value(dataType)

    private def micros: Long =
      -62135596800000000L + (random.nextDouble() * 315537897599999999L).toLong

    private def instant: Instant = Instant.EPOCH.plus(micros, java.time.temporal.ChronoUnit.MICROS)

    private def value(dataType: DataType): Any = dataType match {
      case BooleanType => random.nextBoolean()
      case ByteType => random.nextInt().toByte
      case ShortType => random.nextInt().toShort
      case IntegerType => random.nextInt()
      case LongType => random.nextLong()
      case FloatType => floating.toFloat
      case DoubleType => floating
      case d: DecimalType =>
        val digits = new java.math.BigInteger(random.nextInt(d.precision * 3) + 1, random.self)
        val bounded = digits.mod(java.math.BigInteger.TEN.pow(d.precision))
        new JBigDecimal(if (random.nextBoolean()) bounded else bounded.negate, d.scale)
      case StringType => text
      case BinaryType => text.getBytes(StandardCharsets.UTF_8)
      case DateType => LocalDate.ofEpochDay(random.nextInt(3652059) - 719162L)
      case TimestampType => instant
      case TimestampNTZType => LocalDateTime.ofInstant(instant, ZoneOffset.UTC)
      case s: StructType => structOf(s)
      case a: ArrayType => Seq.fill(random.nextInt(3))(element(a.elementType))
      case m: MapType => Seq.fill(random.nextInt(3))(text -> element(m.valueType)).toMap
      case other => fail(s"no random ${other.sql}")
    }

    private def text: String = {
      val length = if (random.nextBoolean()) random.nextInt(10) else 30 + random.nextInt(10)
      val alphabet = Seq("a", "b", "ü", "漢", "\ufffe", Character.toString(0x1f600))
      // One letter most of the time, so that prefixes are equal and the truncation matters.
      Seq.fill(length)(if (random.nextInt(9) > 0) "a" else alphabet(random.nextInt(6))).mkString
    }

    private def floating: Double = random.nextInt(if (awkward) 30 else 1000000) match {
      case 0 if awkward => Double.NaN
      case 1 if awkward => Double.PositiveInfinity
      case 2 if awkward => -0.0
      case 3 if awkward => 0.0
      case _ => random.nextGaussian() * 1e6
    }
  }

  private def leaves(fields: StructType, parent: Seq[String] = Nil): Seq[(Seq[String], DataType)] =
    fields.toSeq.flatMap { field =>
      val path = parent :+ field.name
      field.dataType match {
        case s: StructType => leaves(s, path)
        case other => Seq(path -> other)
      }
    }

  private def at(node: JsonNode, path: Seq[String]): Option[JsonNode] =
    path.foldLeft(Option(node))((n, name) => n.flatMap(x => Option(x.get(name))))

  private def ordered(dataType: DataType): Boolean = dataType match {
    case _: ArrayType | _: MapType | BinaryType | BooleanType => false
    case _ => true
  }

  private def check(file: DataFrame, statsJson: String): Unit = {
    val stats = json.readTree(statsJson)
    val columns = leaves(schema)
    val exact = file
      .agg(
        count(lit(1)).as("records"),
        columns.zipWithIndex.flatMap { case ((path, dataType), i) =>
          val column = col(path.mkString("."))
          val bounds =
            if (ordered(dataType)) Seq(min(column).as(s"min$i"), max(column).as(s"max$i")) else Nil
          bounds :+ count_if(column.isNull).as(s"nulls$i")
        }: _*
      )
      .head()
    assertEquals(stats.get("numRecords").asLong, exact.getAs[Long]("records"))
    assertEquals(stats.get("tightBounds").asBoolean, true)
    columns.zipWithIndex.foreach { case ((path, dataType), i) =>
      val name = path.mkString(".")
      val nulls = exact.getAs[Long](s"nulls$i")
      assertEquals(at(stats.get("nullCount"), path).map(_.asLong), Some(nulls), name)
      val minimum = at(stats.get("minValues"), path)
      val maximum = at(stats.get("maxValues"), path)
      if (!ordered(dataType)) assertEquals((minimum, maximum), (None, None), name)
      else {
        checkBound(name, minimum, exact.getAs[Any](s"min$i"), isMin = true)
        checkBound(name, maximum, exact.getAs[Any](s"max$i"), isMin = false)
      }
    }
  }

  private def checkBound(
      name: String,
      bound: Option[JsonNode],
      exact: Any,
      isMin: Boolean
  ): Unit = {
    def text: String = bound.map(_.asText).getOrElse(fail(s"$name has no bound for $exact"))
    def number: JBigDecimal = bound.map(_.decimalValue).getOrElse(fail(s"no bound for $name"))
    exact match {
      case null => assertEquals(bound, None, name)
      case d: Double if d.isNaN || d.isInfinite => assertEquals(bound, None, name)
      case f: Float if f.isNaN || f.isInfinite => assertEquals(bound, None, name)
      case d: Double => assertEquals(text.toDouble, if (d == 0) if (isMin) -0.0 else 0.0 else d)
      case f: Float => assertEquals(text.toFloat, if (f == 0) if (isMin) -0.0f else 0.0f else f)
      case d: JBigDecimal => assertEquals(number, d, name)
      case s: String =>
        val order = Arrays.compareUnsigned(bytes(text), bytes(s))
        assert(if (isMin) order <= 0 else order >= 0, s"$name: $text does not bound $s")
        val prefix = s.substring(0, s.offsetByCodePoints(0, s.codePointCount(0, s.length).min(32)))
        assert(text.startsWith(prefix) && text.length <= prefix.length + 2, name)
      case date: LocalDate => assertEquals(text, date.toString, name)
      case instant: Instant =>
        assert(text.endsWith("Z"), text)
        assertEquals(Instant.parse(text).toEpochMilli, instant.toEpochMilli, name)
      case local: LocalDateTime =>
        assertEquals(
          LocalDateTime.parse(text),
          local.truncatedTo(java.time.temporal.ChronoUnit.MILLIS),
          name
        )
      case integer => assertEquals(number, new JBigDecimal(integer.toString), name)
    }
  }

  private def bytes(text: String): Array[Byte] = text.getBytes(StandardCharsets.UTF_8)

  for {
    (seed, nullFraction) <- Seq(1L -> 0.0, 2L -> 0.3, 3L -> 0.9, 4L -> 1.0)
    rowGroups <- Seq("one row group", "many row groups")
  } table.test(s"statistics are what Spark computes: $nullFraction null, $rowGroups") { dir =>
    val rows = new RandomRows(seed, nullFraction, awkward = seed % 2 == 0)(400)
    val options =
      if (rowGroups == "one row group") Map.empty[String, String]
      else Map("parquet.block.row.count.limit" -> "37")
    val add = only(
      write(
        dir,
        dataFrame(rows, schema),
        properties = Map("delta.dataSkippingNumIndexedCols" -> "-1"),
        options = options
      )
    )
    check(spark.read.parquet(dir.resolve(add.path).toString), add.stats.get)
  }

  private def statsOf(dir: Path, df: DataFrame, properties: (String, String)*): JsonNode = {
    val add = only(write(dir, df, properties = properties.toMap))
    json.readTree(add.stats.get)
  }

  table.test("the bounds at zero enclose both zeros, decimals have no exponent") { dir =>
    val df = spark.sql("""
      select 0.0d as plus, -0.0d as minus, float(0) as f, cast(0 as decimal(38, 10)) as d,
        cast(-1e-3 as decimal(20, 4)) as e""")
    val stats = only(write(dir, df)).stats.get
    val numbers = """"minus":%1$s0.0,"f":%1$s0.0,"d":0.0000000000,"e":-0.0010}"""
    assert(stats.contains("minValues\":{\"plus\":-0.0," + numbers.format("-")), stats)
    assert(stats.contains("maxValues\":{\"plus\":0.0," + numbers.format("")), stats)
  }

  table.test("years without four digits have no bound, the other bound is written") { dir =>
    val df = spark.sql("""
      select date_add(date'0001-01-01', -id) as d, timestamp_micros(-62135596800000000 - id) as ts,
        cast(timestamp_micros(253402300799999999 + 86400000000 * id) as timestamp_ntz) as ntz
      from range(0, 2, 1, 1) t(id_) lateral view explode(array(cast(id_ as int))) as id""")
    val stats = json.readTree(only(write(dir, df)).stats.get)
    assertEquals(
      stats.get("maxValues").toString,
      """{"d":"0001-01-01","ts":"0001-01-01T00:00:00.000Z"}"""
    )
    assert(!stats.get("minValues").has("d") && !stats.get("minValues").has("ts"))
  }

  table.test("a value longer than the footer's limit has statistics") { dir =>
    val long = "x" * 10000
    val stats = statsOf(dir, dataFrame(Seq(Row(long)), new StructType().add("s", StringType)))
    assertEquals(stats.at("/minValues/s").asText, "x" * 32)
    assertEquals(stats.at("/maxValues/s").asText, "x" * 32 + "\u007f")
  }

  table.test("only the first 32 leaves have statistics, where a nested leaf is one") { dir =>
    val fields = (1 to 40).map(i => s"$i as c$i").mkString(", ")
    val df = spark.sql(s"select named_struct('x', 1, 'y', array(1)) as st, $fields")
    val nulls = statsOf(dir, df).get("nullCount")
    assertEquals(nulls.size, 31)
    assertEquals(nulls.get("st").size, 2)
    assert(nulls.has("c30") && !nulls.has("c31"))
  }

  table.test("named columns replace the first ones, a struct includes its fields") { dir =>
    val df = spark.sql("select 1 as a, 2 as `b.c`, named_struct('x', 1, 'y', 2) as st, 3 as z")
    val stats = statsOf(
      dir,
      df,
      "delta.dataSkippingStatsColumns" -> "`b.c`, ST, nothere",
      "delta.dataSkippingNumIndexedCols" -> "1"
    )
    assertEquals(stats.get("minValues").toString, """{"b.c":2,"st":{"x":1,"y":2}}""")
    assertEquals(stats.get("numRecords").asLong, 1L)
  }

  table.test("without selected columns there is only numRecords") { dir =>
    val stats = statsOf(dir, spark.range(3).toDF(), "delta.dataSkippingNumIndexedCols" -> "0")
    assertEquals(
      stats.toString,
      """{"numRecords":3,"minValues":{},"maxValues":{},"nullCount":{},"tightBounds":true}"""
    )
  }

  table.test("strings with a collation have no bounds, since readers compare bounds as bytes") {
    dir =>
      val df =
        spark.sql("select 'B' collate UTF8_LCASE as s union all select 'a' collate UTF8_LCASE")
      val stats = statsOf(dir, df.coalesce(1))
      assertEquals(stats.get("minValues").size, 0)
      assertEquals(stats.at("/nullCount/s").asLong, 0L)
  }

  table.test("a variant has its nulls counted") { dir =>
    val df =
      spark.sql("select parse_json(j) as v from values ('1'), (null), ('{}') t(j)").coalesce(1)
    assertEquals(
      statsOf(dir, df).toString,
      """{"numRecords":3,"minValues":{},"maxValues":{},"nullCount":{"v":1},"tightBounds":true}"""
    )
  }

  table.test("columns whose statistics are disabled in Parquet have none") { dir =>
    val df = spark.sql("select 1 as a, 2 as b")
    val add = only(write(dir, df, options = Map("parquet.column.statistics.enabled#a" -> "false")))
    val stats = json.readTree(add.stats.get)
    assertEquals(stats.get("minValues").toString, """{"b":2}""")
  }
}
