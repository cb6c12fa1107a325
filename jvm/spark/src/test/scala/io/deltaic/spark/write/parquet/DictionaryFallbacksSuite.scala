package io.deltaic.spark.write.parquet

import java.nio.file.{Files, Path}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.hadoop.util.HadoopOutputFile

import io.deltaic.spark.util.LocalSpark
import io.deltaic.spark.write.files.{DataWriteSpec, WrittenTable}

class DictionaryFallbacksSuite extends munit.FunSuite with LocalSpark {

  /** A file of a column whose values differ and one that has few values. */
  private def footer(dir: Path, numRows: Int, plain: Set[String]): ParquetMetadata = {
    val df = spark.range(0, numRows.toLong, 1, 1).selectExpr(
      "named_struct('a', id * 7919) as s",
      "id % 3 as few",
      "cast(id as string) as text",
      "if(id < 0, 'x', null) as nulls"
    )
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
    val columns = new DictionaryFallbacks
    val partition = Seq("p", null)
    assertEquals(columns.forNextFile(partition), Set.empty[String])
    val first = footer(dir, 20000, Set.empty)
    assertEquals(withDictionary(first), Set("few"))
    columns.record(partition, first, triedAll = true)
    assertEquals(columns.forNextFile(Seq("q", null)), Set.empty[String])
    val plain = columns.forNextFile(partition)
    assertEquals(plain, Set("s.a", "text"))
    assertEquals(withDictionary(footer(dir, 20000, plain)), Set("few"))
    assertEquals(withDictionary(footer(dir, 20000, plain + "few")), Set.empty[String])
  }

  table.test("dictionaries are tried again after some files") { dir =>
    val columns = new DictionaryFallbacks
    columns.record(Nil, footer(dir, 20000, Set.empty), triedAll = true)
    val files = Seq.fill(20)(columns.forNextFile(Nil).size)
    assertEquals(files, Seq.fill(8)(2) ++ Seq.fill(12)(0))
  }

  table.test("small files, and files without dictionaries, show nothing") { dir =>
    val columns = new DictionaryFallbacks
    columns.record(Nil, footer(dir, 100, Set.empty), triedAll = true)
    columns.record(Nil, footer(dir, 20000, Set("few")), triedAll = false)
    columns.record(Nil, footer(dir, 0, Set.empty), triedAll = true)
    assertEquals(columns.forNextFile(Nil), Set.empty[String])
  }
}
