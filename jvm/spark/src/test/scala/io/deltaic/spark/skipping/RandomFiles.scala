package io.deltaic.spark.skipping

import java.time.format.DateTimeFormatter
import java.time.temporal.ChronoUnit
import java.time.{Instant, LocalDate, ZoneOffset}

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.TypeUtils
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalacheck.Gen

/** A data file with the rows that a reader sees. */
final case class RandomFile(stats: FileStats, validRows: Seq[InternalRow], deletedRows: Int)

/**
 * Files of random rows, with statistics that are computed from the rows as the various writers do: exact or
 * wide, strings and timestamps truncated, NaN included or left out, partly missing, partly invalid.
 */
object RandomFiles {
  import StatsTable._

  /**
   * Few values, so that predicates match rows; some of them differ only in the parts that statistics truncate.
   */
  def values(dataType: DataType): Seq[Any] = dataType match {
    case ByteType => Seq[Byte](-128, -1, 0, 1, 5, 127)
    case IntegerType => Seq(Int.MinValue, -7, -1, 0, 1, 2, 3, 10, Int.MaxValue)
    case LongType => Seq(Long.MinValue, -3L, 0L, 1L, 9007199254740993L, Long.MaxValue)
    case FloatType => Seq(Float.NegativeInfinity, -1.5f, -0.0f, 0.0f, 0.1f, 16777216f, Float.NaN)
    case DoubleType =>
      Seq(Double.NegativeInfinity, -1e300, -0.0, 0.0, 0.1, 2.5, Double.PositiveInfinity, Double.NaN)
    case BooleanType => Seq(true, false)
    case StringType =>
      Seq(
        "",
        "a",
        "ab",
        "abcd",
        "abcde",
        "abcdz",
        "abd",
        "b",
        "\u00e9",
        "\uffee",
        "\ud83d\ude00",
        "abc\ud83d\ude00",
        "\ud83d\ude00\ud83d\ude00\ud83d\ude00\ud83d\ude00"
      )
        .map(UTF8String.fromString)
    case DateType =>
      // 0002 BC, 9999-12-31 and the day after.
      Seq(-80000, -1, 0, 1, 19000, 19001, -719893, 2932896, 2932897)
    case TimestampType | TimestampNTZType =>
      // Among them both sides of a clock set back across midnight (St John's, 2010-11-07), and of a day that
      // a clock left out (Apia, 2011-12-30). The last ones are of 0002 BC and about the end of 9999.
      Seq(
        -3000000000000000L, -1001L, -1L, 0L, 999L, 1000L, 1289097030000000L, 1289097090000000L,
        1289100700000000L, 1325239170000000L, 1325239230000000L, 1700000000123456L,
        1700000000123999L, 1700086400000000L, -62198755200000000L, 253402300799999999L,
        253402300800000000L
      )
    case d: DecimalType =>
      Seq("-12345678.91", "-0.01", "0", "0.01", "1.5", "2.99", "12345678.91")
        .map(t => Decimal(new java.math.BigDecimal(t), d.precision, d.scale))
    case BinaryType => Seq(Array[Byte](), Array[Byte](1, 2))
    case other => throw new IllegalArgumentException(s"No values of type $other")
  }

  val leafPaths: Seq[String] = Seq(
    "byte",
    "int",
    "long",
    "float",
    "double",
    "bool",
    "string",
    "date",
    "ts",
    "ntz",
    "dec",
    "big",
    "binary",
    "nest.n",
    "nest.deep.s"
  )

  /** Of all columns but the partition columns, which come last. */
  private val dataTypes: Seq[DataType] = schema.fields.toSeq.dropRight(2).map(_.dataType)

  private def cell(dataType: DataType): Gen[Any] = dataType match {
    case s: StructType =>
      Gen.frequency(1 -> Gen.const(null), 6 -> row(s.map(_.dataType)))
    case _: ArrayType => Gen.const(null)
    case _ => Gen.frequency(1 -> Gen.const(null), 5 -> Gen.oneOf(values(dataType)))
  }

  private def row(types: Seq[DataType]): Gen[InternalRow] =
    Gen.sequence[Seq[Any], Any](types.map(cell)).map(InternalRow.fromSeq)

  /** Columns of few values are frequent: only then can a file be skipped by NOT and IS NOT NULL. */
  private def rows: Gen[Seq[InternalRow]] = for {
    pool <- Gen.listOfN(3, row(dataTypes))
    count <- Gen.choose(1, 5)
    picked <- Gen.listOfN(count, Gen.oneOf(pool))
  } yield picked

  def file: Gen[RandomFile] = for {
    data <- rows
    p <- Gen.oneOf(null, "", "a", "b", "12")
    q <- Gen.oneOf(null, "1", "2", "-5")
    deleted <-
      Gen.frequency(2 -> Gen.const(Set.empty[Int]), 1 -> Gen.someOf(data.indices).map(_.toSet))
    writer <- writer(data.size)
  } yield {
    val values = Map("x_p" -> p, "x_q" -> q)
    val partition = Seq(
      if (p == null || p.isEmpty) null else UTF8String.fromString(p),
      if (q == null) null else q.toInt
    )
    val all = data.map(r => InternalRow.fromSeq(r.toSeq(dataTypes) ++ partition))
    val valid = all.indices.filterNot(deleted).map(all)
    val described = if (writer.wide) all else valid
    val json = writer.describe(described, all.size)
    RandomFile(FileStats(json, values, deleted.nonEmpty), valid, deleted.size)
  }

  def writer(rows: Int): Gen[RandomWriter] = for {
    wide <- Gen.oneOf(true, false)
    withNaN <- Gen.oneOf(true, false)
    offsetMinutes <- Gen.oneOf(0, 330, -480)
    missing <- Gen.frequency(
      3 -> Gen.const(Set.empty[String]),
      1 -> Gen.someOf(leafPaths.flatMap(p =>
        Seq(s"min.$p", s"max.$p", s"null.$p")
      ) :+ "numRecords").map(_.toSet)
    )
    nullCounts <- Gen.listOfN(leafPaths.size, Gen.choose(0, rows))
    cutAt <- Gen.frequency(9 -> Gen.const(1.0), 1 -> Gen.choose(0.0, 1.0))
  } yield RandomWriter(
    wide,
    withNaN,
    offsetMinutes,
    missing,
    leafPaths.zip(nullCounts).toMap,
    cutAt
  )
}

/**
 * How one writer describes a file.
 *
 * @param wide bounds beyond the values, and null counts that mean nothing unless 0 or all (Protocol
 *   § Per-file Statistics)
 * @param anyNullCount the value of a wide null count that has no meaning
 * @param cutAt the fraction of the string that is written, 1.0 for all
 */
final case class RandomWriter(
    wide: Boolean,
    withNaN: Boolean,
    offsetMinutes: Int,
    missing: Set[String],
    anyNullCount: Map[String, Int],
    cutAt: Double
) {
  import StatsTable._

  private val mapper = new ObjectMapper

  def describe(rows: Seq[InternalRow], numRecords: Int): String = {
    val root = mapper.createObjectNode()
    if (!missing("numRecords")) root.put("numRecords", numRecords)
    root.put("tightBounds", !wide)
    RandomFiles.leafPaths.foreach(describeLeaf(_, rows, numRecords, root))
    val string = mapper.writeValueAsString(root)
    string.take((string.length * cutAt).toInt)
  }

  private def describeLeaf(
      path: String,
      rows: Seq[InternalRow],
      numRecords: Int,
      root: ObjectNode
  ): Unit = {
    val column = BindReferences.bindReference(col(path), attributes)
    val values = rows.map(column.eval(_))
    val nulls = values.count(_ == null)
    if (!missing(s"null.$path")) nullCount(path, nulls, rows.size, numRecords).foreach { n =>
      put(root, "nullCount", path)((node, name) => node.put(name, n))
    }
    val known = values.filter(v => v != null && (withNaN || !isNaN(v)))
    if (known.nonEmpty && column.dataType != BinaryType) {
      val ordering = TypeUtils.getInterpretedOrdering(column.dataType)
      if (!missing(s"min.$path"))
        put(root, "minValues", path)(bound(_, _, known.min(ordering), lower = true))
      if (!missing(s"max.$path"))
        put(root, "maxValues", path)(bound(_, _, known.max(ordering), lower = false))
    }
  }

  /** With wide bounds, null counts of 0 and `numRecords` may be written only if they are true. */
  private def nullCount(path: String, nulls: Int, valid: Int, numRecords: Int): Option[Int] = {
    val claimed = if (wide) anyNullCount(path) else nulls
    val isTrue = (claimed != 0 || nulls == 0) && (claimed != numRecords || nulls == valid)
    if (isTrue) Some(claimed) else None
  }

  private def isNaN(value: Any): Boolean = value match {
    case d: Double => d.isNaN
    case f: Float => f.isNaN
    case _ => false
  }

  private def put(
      root: ObjectNode,
      kind: String,
      path: String
  )(write: (ObjectNode, String) => Any): Unit = {
    val names = path.split('.').map("x_" + _)
    val parent = names.init.foldLeft(root.withObjectProperty(kind))(_.withObjectProperty(_))
    val _ = write(parent, names.last)
  }

  private def bound(node: ObjectNode, name: String, value: Any, lower: Boolean): Any = value match {
    case b: Byte => node.put(name, if (wide && lower) -128 else b.toInt)
    case i: Int if name == "x_date" => node.put(name, LocalDate.ofEpochDay(i).toString)
    case i: Int => node.put(name, if (wide && lower && i > 0) i - 1 else i)
    case l: Long if name == "x_ts" =>
      node.put(name, instant(l, offsetMinutes, "uuuu-MM-dd'T'HH:mm:ss.SSSXXX"))
    case l: Long if name == "x_ntz" => node.put(name, instant(l, 0, "uuuu-MM-dd'T'HH:mm:ss.SSS"))
    case l: Long => node.put(name, l)
    case f: Float if f.isNaN || f.isInfinite => node.put(name, f.toString)
    case d: Double if d.isNaN || d.isInfinite => node.put(name, d.toString)
    case f: Float => node.put(name, f)
    case d: Double => node.put(name, if (wide && !lower) d + 1 else d)
    case b: Boolean => node.put(name, b)
    case d: Decimal => node.put(name, d.toJavaBigDecimal)
    case s: UTF8String => node.put(name, cut(s.toString, lower))
    case other => throw new IllegalArgumentException(s"No bounds like $other")
  }

  private def instant(micros: Long, offsetMinutes: Int, pattern: String): String = {
    val offset = ZoneOffset.ofTotalSeconds(offsetMinutes * 60)
    val time = Instant.EPOCH.plus(micros, ChronoUnit.MICROS).atOffset(offset)
    DateTimeFormatter.ofPattern(pattern).format(time)
  }

  /** Truncates to three characters; the rest of an upper bound is replaced by the last character of Unicode. */
  private def cut(s: String, lower: Boolean): String =
    if (s.codePointCount(0, s.length) <= 3) s
    else s.substring(0, s.offsetByCodePoints(0, 3)) + (if (lower) "" else "\udbff\udfff")
}
