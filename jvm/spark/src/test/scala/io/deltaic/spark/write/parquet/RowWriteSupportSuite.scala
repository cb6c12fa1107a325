package io.deltaic.spark.write.parquet

import java.nio.file.{Files, Path}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.parquet.hadoop.api.WriteSupport
import org.apache.parquet.hadoop.util.HadoopOutputFile
import org.apache.parquet.hadoop.{ParquetOutputFormat, ParquetWriter}
import org.apache.parquet.io.OutputFile
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.unsafe.Platform

import io.deltaic.spark.util.LocalSpark
import io.deltaic.spark.write.files.{DataWriteSpec, WrittenTable}

class RowWriteSupportSuite extends munit.FunSuite with LocalSpark {

  private final class BySpark(file: OutputFile, rebaseMode: String)
      extends ParquetWriter.Builder[InternalRow, BySpark](file) {
    override protected def self(): BySpark = this
    override protected def getWriteSupport(conf: Configuration): WriteSupport[InternalRow] = {
      val sqlConf = new SQLConf
      sqlConf.setConfString(SQLConf.PARQUET_REBASE_MODE_IN_WRITE.key, rebaseMode)
      SQLConf.withExistingConf(sqlConf)(new ParquetWriteSupport)
    }
  }

  private def conf(dir: Path, df: DataFrame): Configuration =
    DataWriteSpec
      .forTable(spark, WrittenTable(dir.toString, df.schema, Nil, Map.empty), Map.empty)
      .hadoopConf

  private def bytesOf(dir: Path, rows: Seq[InternalRow])(
      open: OutputFile => ParquetWriter[InternalRow]
  ): Seq[Byte] = {
    val path = Files.createTempFile(dir, "file", ".parquet")
    Files.delete(path)
    val file = HadoopOutputFile.fromPath(new HadoopPath(path.toString), new Configuration)
    val writer = open(file)
    try rows.foreach(writer.write)
    finally writer.close()
    Files.readAllBytes(path).toSeq
  }

  /** @param moved changes where the rows that our writer gets are in memory */
  private def requireSameBytes(
      dir: Path,
      df: DataFrame,
      moved: InternalRow => InternalRow = identity
  ): Unit = {
    val settings = conf(dir, df)
    val rows = internalRows(df)
    val ours = bytesOf(dir, rows.map(moved))(ParquetRowWriter.open(_, settings, Set.empty))
    val theirs = bytesOf(dir, rows) { file =>
      val mode = settings.get(SQLConf.PARQUET_REBASE_MODE_IN_WRITE.key)
      val codec = ParquetOutputFormat.getCompression(settings)
      new BySpark(file, mode).withConf(settings).withCompressionCodec(codec).build()
    }
    assert(ours == theirs, s"${ours.length} and ${theirs.length} bytes")
  }

  private val primitive = """
    id as l, cast(id as int) as i, cast(id % 100 as byte) as y, cast(id % 30000 as short) as sh,
    cast(id as float) / 3 as f, cast(id as double) / 7 as d, id % 2 = 0 as b,
    cast(id as decimal(9, 2)) as d9, cast(-id as decimal(18, 3)) as d18, concat('s', id % 7) as s,
    cast(concat('ü', id) as binary) as bin, date_add(date'1970-01-01', cast(id as int)) as dt,
    timestamp_micros(id * 1000003) as ts, timestamp'2001-01-01 00:00:00' as ts1,
    cast(timestamp'0001-01-01 00:00:00' as timestamp_ntz) as ntz,
    make_ym_interval(0, cast(id as int)) as ym, make_dt_interval(0, id) as ds"""
  private val nested = """
    cast(id as decimal(38, 9)) as d38, named_struct('a', id, 'b', array(id, null)) as st,
    map(concat('k', id), named_struct('x', id, 'y', cast(null as int))) as m,
    array(array(id), null, array()) as arr, parse_json(concat('{"a":', id, '}')) as v"""

  // Protocol: primitive-types-1, primitive-types-3
  table.test("primitive columns have the bytes of Spark's writer") { dir =>
    requireSameBytes(dir, spark.sql(s"select $primitive from range(0, 3000, 1, 1)"))
  }

  /** As sorted rows are: in memory that is no array of bytes. */
  private def inLongs(row: InternalRow): InternalRow = {
    val unsafe = row.asInstanceOf[UnsafeRow]
    val memory = new Array[Long](unsafe.getSizeInBytes / 8)
    unsafe.writeToMemory(memory, Platform.LONG_ARRAY_OFFSET)
    val copy = new UnsafeRow(unsafe.numFields)
    copy.pointTo(memory, Platform.LONG_ARRAY_OFFSET, unsafe.getSizeInBytes)
    copy
  }

  table.test("strings of sorted rows have the bytes of Spark's writer") { dir =>
    val columns = "concat('s', id % 7) as s, repeat('ü', cast(id * 31 % 1500 as int)) as t"
    requireSameBytes(dir, spark.sql(s"select $columns from range(0, 3000, 1, 1)"), inLongs)
    requireSameBytes(dir, spark.sql(s"select $primitive from range(0, 3000, 1, 1)"), inLongs)
  }

  table.test("nested columns stand between primitive columns at their positions") { dir =>
    val columns = s"id % 5 as first, $nested, id % 3 as between, array(id) as arr2, id as last"
    requireSameBytes(dir, spark.sql(s"select $columns from range(0, 3000, 1, 1)"))
    requireSameBytes(dir, spark.sql(s"select $nested from range(0, 3000, 1, 1)"))
  }

  table.test("Parquet's own validation of rows passes") { dir =>
    val df =
      spark.sql("select named_struct('a', id) as s, id, array(id) as arr from range(0, 10, 1, 1)")
    val settings = conf(dir, df)
    settings.set("parquet.validation", "true")
    val rows = internalRows(df)
    val validated = bytesOf(dir, rows)(ParquetRowWriter.open(_, settings, Set.empty))
    assertEquals(validated, bytesOf(dir, rows)(ParquetRowWriter.open(_, conf(dir, df), Set.empty)))
  }

  table.test("nulls are written at each position") { dir =>
    val rows = spark.sql(s"select $primitive, $nested from range(0, 1000, 1, 1)")
    val withNulls = rows.columns.zipWithIndex.map { case (name, i) =>
      s"if(l % ${i + 2} = 0, null, $name) as $name"
    }
    requireSameBytes(dir, rows.selectExpr(withNulls.toIndexedSeq: _*))
    val allNull = rows.columns.take(17).map(name => s"nullif($name, $name) as $name")
    requireSameBytes(dir, rows.selectExpr(allNull.toIndexedSeq: _*))
    requireSameBytes(dir, rows.limit(0))
  }

  table.test("dates of the Julian calendar are refused if the session says so") { dir =>
    val mode = SQLConf.PARQUET_REBASE_MODE_IN_WRITE.key
    val old = spark.sql("select date'1500-01-01' as d, timestamp'1500-01-01 00:00:00' as t, 1 as i")
    requireSameBytes(dir, old)
    spark.conf.set(mode, "EXCEPTION")
    try {
      requireSameBytes(dir, spark.sql("select date'2020-01-01' as d, 1 as i"))
      Seq("d", "t").foreach { column =>
        val df = old.select(column)
        val error = intercept[Exception] {
          val settings = conf(dir, df)
          bytesOf(dir, internalRows(df))(ParquetRowWriter.open(_, settings, Set.empty))
        }
        assert(error.getMessage.contains("WRITE_ANCIENT_DATETIME"), error.getMessage)
      }
    } finally spark.conf.unset(mode)
  }
}
