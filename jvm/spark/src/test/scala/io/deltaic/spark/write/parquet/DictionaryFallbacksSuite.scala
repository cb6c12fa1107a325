package io.deltaic.spark.write.parquet

import java.nio.file.{Files, Path}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.hadoop.util.HadoopOutputFile
import org.apache.spark.sql.DataFrame

import io.deltaic.spark.util.LocalSpark
import io.deltaic.spark.write.files.{DataWriteSpec, WrittenTable}

class DictionaryFallbacksSuite extends munit.FunSuite with LocalSpark {

  /** A file of a column whose values differ and one that has few values. */
  private def footer(
      dir: Path,
      numRows: Int,
      plain: Set[String],
      nulls: String = "if(id < 0, 'x', null)",
      few: String = "id % 3"
  ): ParquetMetadata = {
    val df = spark.range(0, numRows.toLong, 1, 1).selectExpr(
      "named_struct('a', id * 7919) as s",
      s"$few as few",
      "cast(id as string) as text",
      s"$nulls as nulls"
    )
    footerOf(dir, df, plain)
  }

  private def footerOf(dir: Path, df: DataFrame, plain: Set[String]): ParquetMetadata = {
    val conf = DataWriteSpec
      .forTable(spark, WrittenTable(dir.toString, df.schema, Nil, Map.empty), Map.empty)
      .hadoopConf
    val path = dir.resolve("file.parquet")
    Files.deleteIfExists(path)
    val file = HadoopOutputFile.fromPath(new HadoopPath(path.toString), new Configuration)
    val writer = ParquetRowWriter.open(file, conf, plain)
    internalRows(df).foreach(writer.write)
    writer.close()
    writer.getFooter
  }

  private def withDictionary(file: ParquetMetadata): Set[String] = {
    import scala.jdk.CollectionConverters._
    file.getBlocks.get(0).getColumns.asScala
      .filter(_.getEncodingStats.hasDictionaryPages)
      .map(_.getPath.toDotString).toSet
  }

  table.test("columns whose dictionary was given up have none in the next files") { dir =>
    val columns = DictionaryFallbacks.of(new Configuration)
    val partition = Seq("p", null)
    assertEquals(columns.forNextFile(partition), Set.empty[String])
    val first = footer(dir, 20000, Set.empty)
    assertEquals(withDictionary(first), Set("few"))
    columns.record(partition, first, triedAll = true)
    assertEquals(columns.forNextFile(partition), Set.empty[String], "one file shows little")
    columns.record(partition, first, triedAll = true)
    assertEquals(columns.forNextFile(Seq("q", null)), Set.empty[String])
    val plain = columns.forNextFile(partition)
    assertEquals(plain, Set("s.a", "text"))
    assertEquals(withDictionary(footer(dir, 20000, plain)), Set("few"))
    assertEquals(withDictionary(footer(dir, 20000, plain + "few")), Set.empty[String])
  }

  table.test("dictionaries are tried again after some files") { dir =>
    val columns = DictionaryFallbacks.of(new Configuration)
    val trial = footer(dir, 20000, Set.empty)
    columns.record(Nil, trial, triedAll = true)
    columns.record(Nil, trial, triedAll = true)
    val files = Seq.fill(20)(columns.forNextFile(Nil).size)
    assertEquals(files, Seq.fill(8)(2) ++ Seq.fill(12)(0))
  }

  table.test("small files, and files without dictionaries, show nothing") { dir =>
    val columns = DictionaryFallbacks.of(new Configuration)
    for (_ <- 1 to 2) {
      columns.record(Nil, footer(dir, 19999, Set.empty), triedAll = true)
      columns.record(Nil, footer(dir, 20000, Set("few")), triedAll = false)
      columns.record(Nil, footer(dir, 0, Set.empty), triedAll = true)
    }
    assertEquals(columns.forNextFile(Nil), Set.empty[String])
  }

  table.test("only columns count on which all files agree, and whose first page has values") {
    dir =>
      val columns = DictionaryFallbacks.of(new Configuration)
      val mixed = footer(dir, 30000, Set.empty, "if(id < 20000, null, id)", "id % 3")
      val few = footer(dir, 30000, Set.empty, "id % 5", "id % 3")
      val many = footer(dir, 30000, Set.empty, "if(id % 3 = 0, null, id)", "id")
      assertEquals(withDictionary(mixed), Set("few"))
      columns.record(Nil, mixed, triedAll = true)
      columns.record(Nil, many, triedAll = true)
      assertEquals(columns.forNextFile(Nil), Set("s.a", "text"))
      columns.record(Nil, few, triedAll = true)
      val left = Seq.fill(10)(columns.forNextFile(Nil))
      assertEquals(left, Seq.fill(7)(Set("s.a", "text")) ++ Seq.fill(3)(Set.empty[String]))
  }

  table.test("booleans, which have no dictionaries, show nothing") { dir =>
    val columns = DictionaryFallbacks.of(new Configuration)
    val file = footerOf(dir, spark.range(0, 20000, 1, 1).selectExpr("id % 3 = 0 as b"), Set.empty)
    for (_ <- 1 to 2) columns.record(Nil, file, triedAll = true)
    assertEquals(columns.forNextFile(Nil), Set.empty[String])
  }

  table.test("what was found of the last partitions is remembered") { dir =>
    val columns = DictionaryFallbacks.of(new Configuration)
    val trial = footer(dir, 20000, Set.empty)
    for (p <- 0 to 256; _ <- 1 to 2) columns.record(Seq(p.toString), trial, triedAll = true)
    assertEquals(columns.forNextFile(Seq("0")), Set.empty[String])
    assertEquals(columns.forNextFile(Seq("256")), Set("s.a", "text"))
  }

  table.test("a column whose name has a dot is not taken for a nested one") { dir =>
    def recorded(top: String, nested: String): Set[String] = {
      val columns = DictionaryFallbacks.of(new Configuration)
      val df = spark.range(0, 20000, 1, 1)
        .selectExpr(s"$top as `s.a`", s"named_struct('a', $nested) as s")
      val file = footerOf(dir, df, Set.empty)
      for (_ <- 1 to 2) columns.record(Nil, file, triedAll = true)
      columns.forNextFile(Nil)
    }
    assertEquals(recorded("id * 7", "1"), Set.empty[String])
    assertEquals(recorded("1", "id * 7"), Set("s.a"))
  }
}
