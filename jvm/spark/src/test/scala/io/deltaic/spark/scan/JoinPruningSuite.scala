package io.deltaic.spark.scan

import java.time.ZoneOffset

import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.types._

import io.deltaic.TableBuilder
import io.deltaic.protocol.{AddFile, Metadata, Protocol}
import io.deltaic.spark.schema.TableSchema

class JoinPruningSuite extends munit.FunSuite {

  private val columns = new StructType().add("id", LongType).add("p", StringType)

  private val schema = TableSchema.of(
    "a table",
    Protocol(1, 2),
    Metadata("id", schemaString = columns.json, partitionColumns = Seq("p"))
  ).skipping

  private def file(number: Int, p: String, bounds: Option[(Long, Long)]): AddFile = AddFile(
    s"f$number",
    Map("p" -> p),
    sizeBytes = 1,
    modificationTimeMs = 1,
    dataChange = true,
    stats = bounds.map { case (least, greatest) =>
      s"""{"numRecords":9,"minValues":{"id":$least},"maxValues":{"id":$greatest}}"""
    }
  )

  private def files(count: Int, p: Int => String = _ => "a")(
      bounds: Int => Option[(Long, Long)]
  ): IndexedSeq[AddFile] = (0 until count).map(i => file(i, p(i), bounds(i)))

  private def selective(files: IndexedSeq[AddFile]): Seq[String] = {
    val attributes =
      columns.fields.toSeq.map(field => AttributeReference(field.name, field.dataType)())
    val inMemory = TableBuilder.created(files: _*).open().latest().filesInMemory
    val found = Seq(None, Some(inMemory)).map { table =>
      JoinPruning.selective(attributes, table, files, schema, ZoneOffset.UTC).map(_.name)
    }
    assertEquals(found.head, found.last)
    found.head
  }

  test("a column that the table is sorted by is selective, in any order of the files") {
    assertEquals(selective(files(10)(i => Some((10L * i, 10L * i + 9)))), Seq("id"))
    assertEquals(
      selective(files(1000)(i => Some((10L * (i * 7 % 1000), 10L * (i * 7 % 1000) + 10)))),
      Seq("id")
    )
    // Ten sorted writes of a hundred files each.
    assertEquals(
      selective(files(1000)(i => Some((10L * (i % 100), 10L * (i % 100) + 9)))),
      Seq("id")
    )
  }

  test("a column whose range each file has is not selective") {
    assertEquals(selective(files(10)(i => Some((i.toLong, 1000L - i)))), Nil)
    // Half of the pairs overlap.
    assertEquals(selective(files(100)(i => Some((100L * (i % 2), 100L * (i % 2) + 9)))), Nil)
  }

  test("a file without bounds may have any value") {
    assertEquals(selective(files(10)(_ => None)), Nil)
    assertEquals(
      selective(files(10)(i => Option.when(i > 0)((10L * i, 10L * i + 9)))),
      Seq("id")
    )
    assertEquals(selective(files(10)(i => Option.when(i > 4)((10L * i, 10L * i + 9)))), Nil)
  }

  test("two partition values are enough") {
    assertEquals(selective(files(10, i => s"p${i % 2}")(_ => None)), Seq("p"))
    assertEquals(selective(files(10)(_ => None)), Nil)
    assertEquals(selective(files(1)(_ => Some((1L, 1L)))), Nil)
  }

  test("few files or bytes are not worth pruning") {
    val pruning = JoinPruning(minFiles = 8, minBytes = 64, openCostBytes = 4)
    assert(!pruning.pays(numFiles = 7, sizeBytes = 1000))
    assert(pruning.pays(numFiles = 8, sizeBytes = 32))
    assert(!pruning.pays(numFiles = 8, sizeBytes = 31))
    assert(pruning.pays(numFiles = 16, sizeBytes = 0))
    val always = JoinPruning(minFiles = 0, minBytes = 0, openCostBytes = 0)
    assert(always.pays(numFiles = 2, sizeBytes = 0))
    assert(!always.pays(numFiles = 1, sizeBytes = 1L << 40))
  }
}
