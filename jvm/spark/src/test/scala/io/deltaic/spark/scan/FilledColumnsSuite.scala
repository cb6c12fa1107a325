package io.deltaic.spark.scan

import java.math.{BigDecimal, BigInteger}
import java.nio.file.{Files, Path => LocalPath}

import scala.collection.mutable.ArrayBuffer

import munit.FunSuite
import org.apache.hadoop.fs.Path
import org.apache.parquet.example.data.Group
import org.apache.parquet.example.data.simple.SimpleGroupFactory
import org.apache.parquet.hadoop.example.ExampleParquetWriter
import org.apache.parquet.io.api.Binary
import org.apache.parquet.schema.MessageTypeParser
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.deltaic.ParquetSplits
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.execution.datasources.parquet.ParquetOptions
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.util.SerializableConfiguration

/**
 * Columns as files of other writers have them: each with a dictionary at first, which later row groups have no more, and
 * with values that are null.
 */
class FilledColumnsSuite extends FunSuite {
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

  private def written(field: String)(add: (Group, Int) => Group): Path = {
    val file = new Path(Files.createTempFile(directory, "file", ".parquet").toUri)
    Files.delete(LocalPath.of(file.toUri))
    val schema = MessageTypeParser.parseMessageType(s"message rows { optional $field; }")
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

  private def read[A](
      file: Path,
      dataType: DataType
  )(value: (ColumnVector, Int) => A): Seq[Option[A]] = {
    val stored = new StructType().add("c", dataType)
    val conf = new SQLConf
    conf.setConf(SQLConf.PARQUET_VECTORIZED_READER_BATCH_SIZE, 300)
    val hadoop = ReadConfiguration.of(stored)
    val length = file.getFileSystem(hadoop).getFileStatus(file).getLen
    val readers = new TableReaderFactory(
      "t",
      0L,
      new ParquetSplits(
        conf,
        new Constantly(new SerializableConfiguration(hadoop)),
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
    val found = ArrayBuffer.empty[Option[A]]
    try
      while (reader.next()) {
        val column = reader.get().column(0)
        (0 until reader.get().numRows).foreach { row =>
          found += Option.unless(column.isNullAt(row))(value(column, row))
        }
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

  test("a decimal of more digits than the column has is refused, however the file has it") {
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
