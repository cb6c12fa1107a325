package io.deltaic.spark.scan.vectorized

import java.nio.file.{Files, Path => LocalPath}

import scala.collection.mutable.ArrayBuffer
import scala.util.Random

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.parquet.example.data.simple.SimpleGroupFactory
import org.apache.parquet.hadoop.ParquetFileWriter
import org.apache.parquet.hadoop.example.ExampleParquetWriter
import org.apache.parquet.schema.MessageTypeParser
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.connector.read.PartitionReader
import org.apache.spark.sql.deltaic.scan.ParquetSplits
import org.apache.spark.sql.execution.datasources.PartitionedFile
import org.apache.spark.sql.execution.datasources.parquet._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.sources._
import org.apache.spark.sql.types.{IntegerType, LongType, StringType, StructField, StructType}
import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.PatientSuite
import io.deltaic.spark.scan.ReadConfiguration
import io.deltaic.spark.schema.{FileMetadata, RowTracking, ScanColumns}

/**
 * Positions against files in which a row's `id` is its position: over row groups, pages, splits,
 * filters that leave out some of both, and batch sizes; from both readers.
 */
class RowPositionsSuite extends PatientSuite {
  private val rowCount = 5000
  private val id = StructField("id", LongType)
  private val tracking = RowTracking(Some("row-id"), None)
  private val metadata = StructField("_metadata", FileMetadata.struct(Some(tracking)))
  private val partition = StructField("p", StringType)

  private var directory: LocalPath = _

  override def beforeAll(): Unit = directory = Files.createTempDirectory("deltaic-positions")

  override def afterAll(): Unit =
    org.apache.commons.io.FileUtils.deleteDirectory(directory.toFile)

  /** Every third row has a materialized row ID. */
  private def written(rowGroupBytes: Long, pageRows: Int): Path = {
    val file = new Path(directory.resolve(s"$rowGroupBytes-$pageRows.parquet").toUri)
    val schema = MessageTypeParser.parseMessageType(
      "message rows { optional int64 id; optional int32 noise; optional int64 row-id; }"
    )
    val writer = ExampleParquetWriter
      .builder(file)
      .withType(schema)
      .withWriteMode(ParquetFileWriter.Mode.OVERWRITE)
      .withRowGroupSize(rowGroupBytes)
      .withPageRowCountLimit(pageRows)
      .withMinRowCountForPageSizeCheck(1)
      .withMaxRowCountForPageSizeCheck(20)
      .build()
    val groups = new SimpleGroupFactory(schema)
    val random = new Random(1)
    try
      (0 until rowCount).foreach { i =>
        val group = groups.newGroup().append("id", i.toLong).append("noise", random.nextInt())
        writer.write(if (i % 3 == 0) group.append("row-id", rowIdOf(i)) else group)
      }
    finally writer.close()
    file
  }

  private def rowIdOf(i: Long): Long = if (i % 3 == 0) 1000000L - i else 70000L + i

  private def factory(
      computed: Seq[StructField],
      data: Seq[StructField],
      filters: Seq[Filter],
      batchRows: Int,
      vectorized: Boolean
  ): TableReaderFactory = {
    val conf = new SQLConf
    conf.setConf(SQLConf.PARQUET_VECTORIZED_READER_BATCH_SIZE, batchRows)
    val layout = ScanLayout.of(data, StructType(data), computed, Seq(partition), Some(tracking))
    val stored = if (vectorized) layout.stored else layout.storedWithPositions
    val options = new ParquetOptions(Map.empty[String, String], conf)
    val splits =
      new ParquetSplits(conf, ReadConfiguration.of(stored), stored, filters.toArray, options)
    new TableReaderFactory("t", 0L, splits, layout, vectorized, vectorized, None)
  }

  private def splitsOf(file: Path, count: Int): Seq[PartitionedFile] = {
    val size = file.getFileSystem(new Configuration()).getFileStatus(file).getLen
    val step = (size + count - 1) / count
    (0L until size by step).map { start =>
      // The constants that ScanLayout adds after the partition value: the base row ID and the commit version.
      val constants = new GenericInternalRow(Array[Any](UTF8String.fromString("x"), 70000L, 4L))
      val path = SparkPath.fromPath(file)
      PartitionedFile(constants, path, start, step.min(size - start), fileSize = size)
    }
  }

  private def all[T](reader: PartitionReader[T])(each: T => Unit): Unit =
    try while (reader.next()) each(reader.get())
    finally reader.close()

  /** The result of `read` for each row of the splits. */
  private def rows[A](readers: TableReaderFactory, splits: Seq[PartitionedFile], columnar: Boolean)(
      read: InternalRow => A
  ): Seq[A] = {
    val found = ArrayBuffer.empty[A]
    splits.foreach { split =>
      if (columnar) all(readers.buildColumnarReader(split)) { batch =>
        batch.rowIterator().forEachRemaining(row => found += read(row))
      }
      else all(readers.buildReader(split))(row => found += read(row))
    }
    found.toSeq
  }

  private val layouts = Seq((1L << 27) -> 100000, (1L << 27) -> 100, 4096L -> 50)

  test("a wide table is read in smaller batches unless their size is configured") {
    def batchRows(columns: Int, set: Option[Int] = None): Int = {
      val conf = new SQLConf
      set.foreach(conf.setConf(SQLConf.PARQUET_VECTORIZED_READER_BATCH_SIZE, _))
      val stored = StructType((0 until columns).map(i => StructField(s"c$i", LongType)))
      val options = new ParquetOptions(Map.empty[String, String], conf)
      new ParquetSplits(conf, null, stored, Array.empty, options).batchRows
    }
    assertEquals(
      Seq(0, 1, 16, 17, 32, 33, 5000).map(batchRows(_)),
      Seq(4096, 4096, 4096, 2048, 2048, 1024, 1024)
    )
    assertEquals(Seq(1, 5000).map(batchRows(_, Some(300))), Seq(300, 300))
  }

  test("positions are correct, whichever row groups and pages are skipped") {
    val random = new Random(5)
    for {
      (rowGroupBytes, pageRows) <- layouts
      file = written(rowGroupBytes, pageRows)
      splits <- Seq(1, 6)
      (batchRows, vectorized, columnar) <-
        Seq((64, true, true), (4096, true, true), (70, true, false), (4096, false, false))
      range <- Seq(None, Some(random.nextInt(rowCount)), Some(random.nextInt(rowCount)))
    } {
      val filters = range.toSeq.map { from =>
        Or(And(GreaterThanOrEqual("id", from), LessThan("id", from + 130)), EqualTo("id", 4321L))
      }
      val position = ScanColumns.rowIndexField
      val readers = factory(Seq(position), Seq(id), filters, batchRows, vectorized)
      val found =
        rows(readers, splitsOf(file, splits), columnar)(r => r.getLong(0) -> r.getLong(1))
      val mode = s"$rowGroupBytes $pageRows $splits $batchRows $vectorized $columnar $range"
      assertEquals(found.filter { case (i, at) => i != at }, Nil, mode)
      val wanted = range.fold(0 until rowCount)(f => f until (f + 130).min(rowCount))
      assertEquals(wanted.filterNot(found.map(_._1.toInt).toSet), Vector.empty[Int], mode)
      assertEquals(found.distinct.length, found.length, mode)
    }
  }

  test("pages are skipped in files whose positions are requested") {
    val file = written(1L << 27, 100)
    val filters = Seq(EqualTo("id", 2222L))
    Seq(Seq(ScanColumns.rowIndexField), Nil).foreach { computed =>
      val readers = factory(computed, Seq(id), filters, 4096, vectorized = true)
      val found = rows(readers, splitsOf(file, 1), columnar = true)(_.getLong(0))
      assertEquals(found, 2200L until 2300L: Seq[Long])
    }
  }

  test("positions without any column of the file count all its rows") {
    layouts.foreach { case (rowGroupBytes, pageRows) =>
      val file = written(rowGroupBytes, pageRows)
      val readers = factory(Seq(ScanColumns.rowIndexField), Nil, Nil, 1000, vectorized = true)
      val found = rows(readers, splitsOf(file, 3), columnar = true)(_.getLong(0))
      assertEquals(found, 0L until rowCount.toLong: Seq[Long])
    }
  }

  test(
    "row IDs are the file's own where there are some, and the base plus the position elsewhere"
  ) {
    val file = written(4096L, 50)
    for ((vectorized, columnar) <- Seq(true -> true, true -> false, false -> false)) {
      val readers = factory(Seq(metadata), Seq(id), Nil, 300, vectorized)
      val fields = metadata.dataType.asInstanceOf[StructType]
      val found = rows(readers, splitsOf(file, 2), columnar) { row =>
        val struct = row.getStruct(1, fields.length)
        def long(name: String) = struct.getLong(fields.fieldIndex(name))
        assertEquals(row.getUTF8String(2).toString, "x")
        assertEquals(
          struct.getUTF8String(fields.fieldIndex("file_name")).toString,
          file.getName
        )
        assertEquals(
          Seq("base_row_id", "row_commit_version", "default_row_commit_version").map(long),
          Seq(70000L, 4L, 4L)
        )
        (row.getLong(0), long("row_index"), long("row_id"))
      }
      assertEquals(
        found,
        (0L until rowCount.toLong).map(i => (i, i, rowIdOf(i))): Seq[(Long, Long, Long)]
      )
    }
  }

  test("columns that the file lacks are null, and others are read by their names") {
    val file = written(4096L, 50)
    val missing = StructField("missing", IntegerType)
    for (vectorized <- Seq(true, false)) {
      val position = Seq(ScanColumns.rowIndexField)
      val readers = factory(position, Seq(missing, id), Nil, 64, vectorized)
      val found = rows(readers, splitsOf(file, 1), vectorized) { row =>
        assert(row.isNullAt(0))
        row.getLong(1) -> row.getLong(2)
      }
      assertEquals(found.map(_._1), found.map(_._2))
      assertEquals(found.length, rowCount)
    }
  }
}
