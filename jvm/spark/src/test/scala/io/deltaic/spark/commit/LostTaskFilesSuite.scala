package io.deltaic.spark.commit

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.spark.sql.SparkSession

import io.deltaic.spark.util.LocalSpark
import io.deltaic.spark.write.files.{DataWriteSpec, PartitionedDataWriter, WrittenTable}

class LostTaskFilesSuite extends munit.FunSuite with LocalSpark {

  private def files(directory: Path): Set[String] = {
    val found = Files.walk(directory)
    try
      found.iterator.asScala
        .filter(file => Files.isRegularFile(file) && !file.toString.endsWith(".crc"))
        .map(directory.relativize(_).toString)
        .toSet
    finally found.close()
  }

  private def writeWith(spec: DataWriteSpec, session: SparkSession): Unit = {
    val writer = new PartitionedDataWriter(spec, taskPartition = 3)
    internalRows(session.sql("select id, id % 3 as _p from range(9) order by _p"))
      .foreach(writer.write)
    writer.commit()
  }

  private def spec(
      directory: Path,
      properties: Map[String, String],
      writeUuidPrefix: Long
  ): DataWriteSpec =
    DataWriteSpec.forTable(
      spark,
      WrittenTable(
        directory.toString,
        spark.sql("select id, id % 3 as _p from range(1)").schema,
        Seq("_p"),
        properties
      ),
      Map.empty,
      writeUuidPrefix = writeUuidPrefix
    )

  Seq(Map.empty[String, String], Map("delta.randomizeFilePrefixes" -> "true")).foreach {
    properties =>
      table.test(s"files of a write are found in every partition, and no others: $properties") {
        directory =>
          val mark = DataWriteSpec.newUuidPrefix()
          val failed = spec(directory, properties, mark)
          writeWith(spec(directory, properties, DataWriteSpec.newUuidPrefix()), spark)
          val log = Files.createDirectories(directory.resolve("_delta_log"))
          Files.writeString(log.resolve(f"${0}%020d.json"), "{}")
          val before = files(directory)
          writeWith(failed, spark)
          assertEquals(files(directory).size, before.size + 3)
          val table = new HadoopPath(directory.toUri)
          new LostTaskFiles(table, new Configuration).delete(DataWriteSpec.isNamed(mark, _))
          assertEquals(files(directory), before)
      }
  }

  table.test("a table that does not exist has none") { directory =>
    val nothing = new HadoopPath(directory.resolve("nothing").toUri)
    new LostTaskFiles(nothing, new Configuration).delete(_ => true)
  }
}
