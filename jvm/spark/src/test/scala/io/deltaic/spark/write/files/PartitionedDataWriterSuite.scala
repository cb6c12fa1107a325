package io.deltaic.spark.write.files

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, ObjectInputStream, ObjectOutputStream}
import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.spark.sql.types._
import org.apache.spark.sql.{DataFrame, Row}

import io.deltaic.protocol.{AddFile, DeltaicThrowable}
import io.deltaic.spark.util.LocalSpark

class PartitionedDataWriterSuite extends munit.FunSuite with LocalSpark {

  private def dataFiles(directory: Path): Seq[String] = {
    val files = Files.walk(directory)
    try files.iterator.asScala.filter(_.toString.endsWith(".parquet")).map(_.toString).toSeq
    finally files.close()
  }

  private def read(directory: Path, add: AddFile): DataFrame =
    spark.read.parquet(directory.resolve(new java.net.URI(add.path).getPath).toString)

  // Protocol: primitive-types-1, primitive-types-3
  table.test("rows of every type are what Spark's own reader reads") { dir =>
    val df = spark.sql("""
      select id as l, cast(id as int) as i, cast(id % 100 as byte) as y, cast(id as short) as sh,
        cast(id as float) / 3 as f, cast(id as double) / 7 as d, id % 2 = 0 as b,
        cast(id as decimal(9, 2)) as d9, cast(id as decimal(18, 3)) as d18,
        cast(id as decimal(38, 9)) as d38, concat('s', id) as s, cast(concat('s', id) as binary) as bin,
        date_add(date'1500-01-01', cast(id as int)) as dt, timestamp_micros(id * 1000003) as ts,
        cast(timestamp'0001-01-01 00:00:00' as timestamp_ntz) as ntz,
        if(id % 3 = 0, null, named_struct('a', id, 'b', array(id, null))) as st,
        if(id % 5 = 0, null, map(concat('k', id), id)) as m
      from range(0, 1000, 1, 1)""")
    val add = only(write(dir, df))
    val actual = read(dir, add)
    assertEquals(
      actual.schema,
      StructType(df.schema.map(_.copy(nullable = true))).asNullableForTest
    )
    assertEquals(actual.orderBy("l").collect().toSeq, df.collect().toSeq)
    assertEquals(add.sizeBytes, Files.size(Path.of(dataFiles(dir).head)))
    assertEquals(add.partitionValues, Map.empty[String, String])
    assert(add.dataChange)
    assert(add.path.matches("part-00007-[-0-9a-f]{36}-c000\\.snappy\\.parquet"), add.path)
  }

  // Protocol: writer-icebergcompatv2-11
  table.test("timestamps are 64-bit microseconds regardless of the session's settings") { dir =>
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    spark.conf.set("spark.sql.parquet.writeLegacyFormat", "true")
    try
      write(
        dir,
        spark.sql("select timestamp'1000-01-01 00:00:00' as ts, cast(1 as decimal(5, 1)) as d")
      )
    finally {
      spark.conf.unset("spark.sql.parquet.outputTimestampType")
      spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
    }
    val path = new org.apache.hadoop.fs.Path(dataFiles(dir).head)
    val reader =
      ParquetFileReader.open(HadoopInputFile.fromPath(path, spark.sparkContext.hadoopConfiguration))
    try {
      val columns = reader.getFileMetaData.getSchema.getColumns.asScala.map(
        _.getPrimitiveType.getPrimitiveTypeName
      )
      assertEquals(columns.toSeq, Seq(PrimitiveTypeName.INT64, PrimitiveTypeName.INT32))
    } finally reader.close()
  }

  private val partitioned = new StructType()
    .add("p", StringType)
    .add("v", IntegerType)
    .add("d", DateType)

  table.test("each partition gets a file in its directory, without the partition columns") { dir =>
    val rows = Seq(("a b", 1), ("a b", 2), (null, 3), ("", 4), ("x/y", 5)).map { case (p, v) =>
      Row(p, v, java.sql.Date.valueOf("2020-02-29"))
    }
    val adds = write(dir, dataFrame(rows, partitioned), Seq("d", "p"))
    val byValue = adds.groupBy(_.partitionValues("p")).map { case (p, files) =>
      p -> files.map(_.path.split("/part-").head).distinct
    }
    assertEquals(
      byValue,
      Map(
        "a b" -> Seq("d=2020-02-29/p=a%20b"),
        (null: String) -> Seq("d=2020-02-29/p=__HIVE_DEFAULT_PARTITION__"),
        "x/y" -> Seq("d=2020-02-29/p=x%252Fy")
      )
    )
    assert(adds.forall(_.partitionValues("d") == "2020-02-29"))
    val values = adds.flatMap(add => read(dir, add).collect().toSeq)
    assertEquals(values.toSet, Set(1, 2, 3, 4, 5).map(Row(_)))
  }

  // Protocol: requirements-for-writers-data-files-1
  table.test("a partition that comes back gets another file") { dir =>
    val rows = Seq("a", "b", "a").zipWithIndex.map { case (p, v) => Row(p, v, null) }
    val adds = write(dir, dataFrame(rows, partitioned), Seq("p"))
    assertEquals(adds.map(_.partitionValues), Seq("a", "b", "a").map(p => Map("p" -> p)))
    assertEquals(adds.map(_.path).distinct.size, 3)
  }

  table.test("files hold at most maxRecordsPerFile records") { dir =>
    val adds =
      write(dir, spark.range(0, 10, 1, 1).toDF(), options = Map("maxRecordsPerFile" -> "4"))
    assertEquals(adds.map(read(dir, _).count()), Seq(4L, 4L, 2L))
  }

  table.test("a task without rows writes nothing") { dir =>
    assertEquals(write(dir, spark.range(0).toDF()), Nil)
    assertEquals(dataFiles(dir), Nil)
  }

  private def specOf(
      dir: Path,
      schema: StructType,
      partitionColumns: Seq[String],
      properties: Map[String, String] = Map.empty,
      columnMapping: Boolean = false
  ): DataWriteSpec =
    DataWriteSpec.forTable(
      spark,
      WrittenTable(dir.toString, schema, partitionColumns, properties, columnMapping),
      Map.empty
    )

  table.test("abort deletes complete and unfinished files") { dir =>
    val df = spark.range(0, 10, 1, 1).selectExpr("id div 4 as p", "id")
    val writer = new PartitionedDataWriter(specOf(dir, df.schema, Seq("p")), 0)
    internalRows(df).foreach(writer.write)
    assertEquals(dataFiles(dir).size, 3)
    writer.abort()
    assertEquals(dataFiles(dir), Nil)
  }

  table.test("a specification survives serialization") { dir =>
    val out = new ByteArrayOutputStream()
    new ObjectOutputStream(out).writeObject(specOf(dir, partitioned, Seq("p")))
    val in = new ObjectInputStream(new ByteArrayInputStream(out.toByteArray))
    val writer = new PartitionedDataWriter(in.readObject().asInstanceOf[DataWriteSpec], 0)
    internalRows(dataFrame(Seq(Row("a", 1, null)), partitioned)).foreach(writer.write)
    assertEquals(writer.commit().map(_.partitionValues), Seq(Map("p" -> "a")))
    assertEquals(writer.numRecords, 1L)
  }

  table.test("random prefixes replace partition directories") { dir =>
    val properties = Map("delta.randomizeFilePrefixes" -> "true", "delta.randomPrefixLength" -> "3")
    val rows = dataFrame(Seq(Row("a", 1, null)), partitioned)
    val add = only(write(dir, rows, Seq("p"), properties))
    assert(add.path.matches("[0-9A-Za-z]{3}/part-.*"), add.path)
    assertEquals(read(dir, add).count(), 1L)
  }

  table.test("column mapping puts physical names and field ids into the file") { dir =>
    def mapped(name: String, physical: String, id: Long): Metadata = new MetadataBuilder()
      .putString("delta.columnMapping.physicalName", physical)
      .putLong("delta.columnMapping.id", id)
      .putString("comment", name)
      .build()
    val schema = new StructType()
      .add("p", StringType, nullable = true, mapped("p", "col-p", 1))
      .add("v", IntegerType, nullable = true, mapped("v", "col-v", 2))
    val spec = specOf(dir, schema, Seq("p"), columnMapping = true)
    val writer = new PartitionedDataWriter(spec, 0)
    internalRows(dataFrame(Seq(Row("a", 1)), schema)).foreach(writer.write)
    val add = only(writer.commit())
    assertEquals(add.partitionValues, Map("col-p" -> "a"))
    assert(add.stats.get.contains(""""minValues":{"col-v":1}"""), add.stats)
    val path = new org.apache.hadoop.fs.Path(dataFiles(dir).head)
    val reader =
      ParquetFileReader.open(HadoopInputFile.fromPath(path, spark.sparkContext.hadoopConfiguration))
    try {
      val field = reader.getFileMetaData.getSchema.getFields.get(0)
      assertEquals((field.getName, field.getId.intValue), ("col-v", 2))
    } finally reader.close()
  }

  table.test("compression and Parquet's own settings are honored") { dir =>
    val options = Map("compression" -> "zstd", "parquet.block.row.count.limit" -> "10")
    val add = only(write(dir, spark.range(0, 100, 1, 1).toDF(), options = options))
    assert(add.path.endsWith(".zstd.parquet"), add.path)
    val path = new org.apache.hadoop.fs.Path(dataFiles(dir).head)
    val reader =
      ParquetFileReader.open(HadoopInputFile.fromPath(path, spark.sparkContext.hadoopConfiguration))
    try assertEquals(reader.getRowGroups.size, 10)
    finally reader.close()
  }

  private val strict = new StructType()
    .add("id", LongType, nullable = false)
    .add("st", new StructType().add("a", IntegerType, nullable = false).add("b", IntegerType))
    .add(
      "arr",
      ArrayType(new StructType().add("x", IntegerType, nullable = false), containsNull = false)
    )
    .add("m", MapType(StringType, IntegerType, valueContainsNull = false))
    .add("p", StringType, nullable = false)

  private val valid = Row(1L, Row(1, null), Seq(Row(1)), Map("k" -> 1), "p")

  private def violation(dir: Path, row: Row): Option[String] = {
    val loose = StructType(strict.map(f => StructField(f.name, f.dataType.asNullableForTest)))
    val writer = new PartitionedDataWriter(specOf(dir, strict, Seq("p")), 0)
    try {
      internalRows(dataFrame(Seq(row), loose)).foreach(writer.write)
      None
    } catch {
      case e: DeltaicThrowable =>
        assertEquals(e.condition, "DELTAIC_NOT_NULL_VIOLATED")
        assertEquals(e.parameters("table"), dir.toString)
        Some(e.parameters("column"))
    } finally writer.abort()
  }

  table.test("a null in a NOT NULL column at any depth is refused with its name") { dir =>
    assertEquals(violation(dir, valid), None)
    assertEquals(violation(dir, Row(1L, null, null, null, "p")), None)
    assertEquals(violation(dir, Row(null, null, null, null, "p")), Some("id"))
    assertEquals(violation(dir, Row(1L, Row(null, 1), null, null, "p")), Some("st.a"))
    assertEquals(violation(dir, Row(1L, null, Seq(Row(1), null), null, "p")), Some("arr.element"))
    assertEquals(violation(dir, Row(1L, null, Seq(Row(null)), null, "p")), Some("arr.element.x"))
    assertEquals(violation(dir, Row(1L, null, null, Map("k" -> null), "p")), Some("m.value"))
    assertEquals(violation(dir, Row(1L, null, null, null, null)), Some("p"))
    assertEquals(violation(dir, Row(1L, null, null, null, "")), Some("p"))
    assertEquals(dataFiles(dir), Nil)
  }

  test("rows of a schema without NOT NULL columns are not checked") {
    assertEquals(NotNullCheck.of("t", new StructType().add("a", IntegerType)).isEmpty, true)
    assertEquals(NotNullCheck.of("t", strict).isEmpty, false)
  }

  table.test("a table needs a column besides its partition columns") { dir =>
    val error = intercept[DeltaicThrowable] {
      specOf(dir, new StructType().add("p", StringType), Seq("p"))
    }
    assertEquals(error.condition, "DELTAIC_NO_DATA_COLUMNS")
  }

  table.test("a wrong setting is refused before anything is written") { dir =>
    Seq(
      "delta.dataSkippingNumIndexedCols" -> "-2",
      "delta.dataSkippingNumIndexedCols" -> "x"
    ).foreach {
      case (property, value) =>
        val error =
          intercept[DeltaicThrowable](specOf(dir, partitioned, Nil, Map(property -> value)))
        assertEquals(error.condition, "DELTAIC_INVALID_TABLE_PROPERTY_VALUE")
        assertEquals(error.parameters, Map("property" -> property, "value" -> value))
    }
    val error = intercept[DeltaicThrowable] {
      write(dir, spark.range(1).toDF(), options = Map("maxRecordsPerFile" -> "many"))
    }
    assertEquals(error.condition, "DELTAIC_INVALID_WRITE_OPTION")
  }

  private implicit final class Nullable(dataType: DataType) {
    def asNullableForTest: DataType = dataType match {
      case s: StructType =>
        StructType(s.map(f => f.copy(dataType = f.dataType.asNullableForTest, nullable = true)))
      case ArrayType(element, _) => ArrayType(element.asNullableForTest)
      case MapType(key, value, _) => MapType(key.asNullableForTest, value.asNullableForTest)
      case other => other
    }
  }
}
