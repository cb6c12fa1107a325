package io.deltaic.spark.scan.vectorized

import java.math.{BigDecimal, BigInteger}
import java.nio.file.{Files, Path => LocalPath}

import scala.collection.mutable.ArrayBuffer

import munit.FunSuite
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.example.data.Group
import org.apache.parquet.example.data.simple.SimpleGroupFactory
import org.apache.parquet.hadoop.example.ExampleParquetWriter
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.MessageTypeParser
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.deltaic.scan.ParquetSplits
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.execution.datasources.parquet.ParquetOptions
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector

import io.deltaic.spark.scan.ReadConfiguration

/**
 * Columns as in files of other writers: each has a dictionary at first, later row groups have none,
 * and some values are null.
 */
class DecodedColumnsSuite extends FunSuite {
  private val rows = 9000
  private var directory: LocalPath = _

  override def beforeAll(): Unit = directory = Files.createTempDirectory("deltaic-columns")

  override def afterAll(): Unit =
    org.apache.commons.io.FileUtils.deleteDirectory(directory.toFile)

  /** Few numbers, then many; negative ones among them. */
  private def number(row: Int): Option[Int] =
    Option.when(row % 7 != 3)(if (row < 5000) (row % 11) * 100 - 300 else row * 37 - 200000)

  private def bytesOf(n: Int): Binary =
    Binary.fromConstantByteArray(BigInteger.valueOf(n.toLong).toByteArray)

  private def written(fields: String*)(add: (Group, Int) => Group): Path = {
    val file = new Path(Files.createTempFile(directory, "file", ".parquet").toUri)
    Files.delete(LocalPath.of(file.toUri))
    val columns = fields.map(f => if (f.endsWith("}")) s"optional $f" else s"optional $f;")
    val schema = MessageTypeParser.parseMessageType(columns.mkString("message rows { ", " ", " }"))
    val writer = ExampleParquetWriter
      .builder(file)
      .withType(schema)
      .withRowGroupSize(16384L)
      .withPageRowCountLimit(500)
      .withDictionaryPageSize(2000)
      .withMinRowCountForPageSizeCheck(1)
      .withMaxRowCountForPageSizeCheck(100)
      .build()
    val groups = new SimpleGroupFactory(schema)
    try
      (0 until rows).foreach { row =>
        val group = groups.newGroup()
        writer.write(number(row).fold(group: Group)(add(group, _)))
      }
    finally writer.close()
    file
  }

  private def read[A](file: Path, dataType: DataType)(
      value: (ColumnVector, Int) => A
  ): Seq[Option[A]] =
    readAll(file, new StructType().add("c", dataType)) { (columns, row) =>
      Option.unless(columns(0).isNullAt(row))(value(columns(0), row))
    }

  private def readAll[A](file: Path, stored: StructType)(
      each: (Int => ColumnVector, Int) => A
  ): Seq[A] = {
    val conf = new SQLConf
    conf.setConf(SQLConf.PARQUET_VECTORIZED_READER_BATCH_SIZE, 300)
    val length = file.getFileSystem(new Configuration()).getFileStatus(file).getLen
    val readers = new TableReaderFactory(
      "t",
      0L,
      new ParquetSplits(
        conf,
        ReadConfiguration.of(stored),
        stored,
        Array.empty,
        new ParquetOptions(Map.empty[String, String], conf)
      ),
      ScanLayout.of(stored, stored, Nil, Nil, None),
      vectorized = true,
      columnar = true,
      None
    )
    val split =
      PartitionedFile(InternalRow.empty, SparkPath.fromPath(file), 0, length, fileSize = length)
    val reader = readers.buildColumnarReader(split)
    val found = ArrayBuffer.empty[A]
    try
      while (reader.next()) {
        val batch = reader.get()
        (0 until batch.numRows).foreach(row => found += each(batch.column, row))
      }
    finally reader.close()
    found.toSeq
  }

  private val expected: Seq[Option[Int]] = (0 until rows).map(number)

  private val asLong = (group: Group, n: Int) => group.append("c", n.toLong)
  private val asInt = (group: Group, n: Int) => group.append("c", n)
  private val asBytes = (group: Group, n: Int) => group.append("c", bytesOf(n))

  for {
    (stored, add, precisions) <- Seq(
      ("int32 c (DECIMAL(7,2))", asInt, Seq(7, 9, 12)),
      ("int64 c (DECIMAL(7,2))", asLong, Seq(7, 12, 18)),
      ("int64 c (DECIMAL(15,2))", asLong, Seq(15, 18)),
      ("binary c (DECIMAL(7,2))", asBytes, Seq(7, 12, 18, 25)),
      ("binary c (DECIMAL(15,2))", asBytes, Seq(15, 18, 30))
    )
    precision <- precisions
  } test(s"$stored is read as DECIMAL($precision,2)") {
    val found = read(written(stored)(add), DecimalType(precision, 2)) { (column, row) =>
      column.getDecimal(row, precision, 2).toJavaBigDecimal
    }
    assertEquals(found, expected.map(_.map(n => BigDecimal.valueOf(n.toLong, 2))))
  }

  test("decimals of all kinds in one file are read as columns of their own types") {
    val file = written(
      "binary b (DECIMAL(7,2))",
      "int32 i (DECIMAL(7,2))",
      "int64 l (DECIMAL(15,2))",
      "fixed_len_byte_array(9) f (DECIMAL(20,2))",
      "int64 n",
      "binary s (STRING)"
    ) { (group, n) =>
      val fixed = Array.fill[Byte](9)(if (n < 0) -1 else 0)
      val bytes = BigInteger.valueOf(n.toLong).toByteArray
      System.arraycopy(bytes, 0, fixed, 9 - bytes.length, bytes.length)
      group.append("b", bytesOf(n)).append("i", n).append("l", n.toLong).append("n", n.toLong)
        .append("f", Binary.fromConstantByteArray(fixed)).append("s", n.toString)
    }
    val decimals = Seq("b" -> 7, "i" -> 9, "l" -> 18, "f" -> 20, "missing" -> 7)
    val stored = decimals.foldLeft(new StructType()) { case (all, (name, precision)) =>
      all.add(name, DecimalType(precision, 2))
    }.add("n", LongType).add("s", StringType)
    val found = readAll(file, stored) { (columns, row) =>
      val values = decimals.zipWithIndex.map { case ((_, precision), ordinal) =>
        Option(columns(ordinal).getDecimal(row, precision, 2)).map(_.toJavaBigDecimal)
      }
      val whole = Option.unless(columns(5).isNullAt(row))(columns(5).getLong(row))
      (values, whole, Option(columns(6).getUTF8String(row)).map(_.toString))
    }
    val wanted = expected.map { number =>
      val decimal = number.map(n => BigDecimal.valueOf(n.toLong, 2))
      (Seq.fill(4)(decimal) :+ None, number.map(_.toLong), number.map(_.toString))
    }
    assertEquals(found, wanted)
  }

  test("decimals that are bytes within structs, arrays and maps are read") {
    val file = written(
      "group s { optional binary d (DECIMAL(7,2)); optional int32 n; }",
      "group l (LIST) { repeated group list { optional binary element (DECIMAL(7,2)); } }",
      "group m (MAP) { repeated group key_value { required int32 key; optional group value " +
        "{ optional binary d (DECIMAL(15,2)); } } }"
    ) { (group, n) =>
      group.addGroup("s").append("d", bytesOf(n)).append("n", n)
      val list = group.addGroup("l")
      list.addGroup("list").append("element", bytesOf(n))
      list.addGroup("list")
      list.addGroup("list").append("element", bytesOf(n + 1))
      group.addGroup("m").addGroup("key_value").append("key", n).addGroup("value")
        .append("d", bytesOf(n))
      group
    }
    val inMap = new StructType().add("d", DecimalType(18, 2))
    val stored = new StructType()
      .add("s", new StructType().add("d", DecimalType(7, 2)).add("n", IntegerType))
      .add("l", ArrayType(DecimalType(9, 2)))
      .add("m", MapType(IntegerType, inMap))
    val found = readAll(file, stored) { (columns, row) =>
      val struct = Option(columns(0).getStruct(row))
        .map(s => (s.getDecimal(0, 7, 2).toJavaBigDecimal, s.getInt(1)))
      val list = Option(columns(1).getArray(row)).map { array =>
        (0 until array.numElements).map(i =>
          Option(array.getDecimal(i, 9, 2)).map(_.toJavaBigDecimal)
        )
      }
      val map = Option(columns(2).getMap(row)).map { m =>
        m.keyArray.getInt(0) -> m.valueArray.getStruct(0, 1).getDecimal(0, 18, 2).toJavaBigDecimal
      }
      (struct, list, map)
    }
    def decimal(n: Int) = BigDecimal.valueOf(n.toLong, 2)
    val wanted = expected.map { number =>
      (
        number.map(n => (decimal(n), n)),
        number.map(n => IndexedSeq(Some(decimal(n)), None, Some(decimal(n + 1)))),
        number.map(n => n -> decimal(n))
      )
    }
    assertEquals(found.map(_._1), wanted.map(_._1))
    assertEquals(found.map(_._2.map(_.toList)), wanted.map(_._2.map(_.toList)))
    assertEquals(found.map(_._3), wanted.map(_._3))
  }

  test("a decimal with more digits than the column's type is rejected, in any encoding") {
    val decimal = (column: ColumnVector, row: Int) => column.getDecimal(row, 5, 2)
    val e = intercept[ArithmeticException] {
      read(written("binary c (DECIMAL(7,2))")(asBytes), DecimalType(5, 2))(decimal)
    }
    assert(e.getMessage.contains("in column c, which is DECIMAL(5,2)"), e.getMessage)
    intercept[Exception] {
      read(written("int64 c (DECIMAL(15,2))")(asLong), DecimalType(7, 2))(decimal)
    }: Unit
  }

  test("int32 is read as INT and as BIGINT, int64 as BIGINT, both as dates and times") {
    assertEquals(read(written("int32 c")(asInt), IntegerType)(_.getInt(_)), expected)
    val longs = expected.map(_.map(_.toLong))
    assertEquals(read(written("int32 c")(asInt), LongType)(_.getLong(_)), longs)
    assertEquals(read(written("int64 c")(asLong), LongType)(_.getLong(_)), longs)
    assertEquals(read(written("int32 c (DATE)")(asInt), DateType)(_.getInt(_)), expected)
    val micros = written("int64 c (TIMESTAMP(MICROS,true))")(asLong)
    assertEquals(read(micros, TimestampType)(_.getLong(_)), longs)
    val millis = written("int64 c (TIMESTAMP(MILLIS,true))")(asLong)
    assertEquals(read(millis, TimestampType)(_.getLong(_)), longs.map(_.map(_ * 1000)))
  }

  test("double is read as DOUBLE, and so are float and int32") {
    val doubles = expected.map(_.map(_.toDouble))
    val stored = written("double c")((group, n) => group.append("c", n.toDouble))
    assertEquals(read(stored, DoubleType)(_.getDouble(_)), doubles)
    val floats = written("float c")((group, n) => group.append("c", n.toFloat))
    assertEquals(read(floats, DoubleType)(_.getDouble(_)), doubles)
    assertEquals(read(written("int32 c")(asInt), DoubleType)(_.getDouble(_)), doubles)
  }

  test("binary is read as STRING") {
    val stored = written("binary c (STRING)")((group, n) => group.append("c", n.toString))
    val found = read(stored, StringType)(_.getUTF8String(_).toString)
    assertEquals(found, expected.map(_.map(_.toString)))
  }
}
