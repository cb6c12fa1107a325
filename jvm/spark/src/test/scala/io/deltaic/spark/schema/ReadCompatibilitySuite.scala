package io.deltaic.spark.schema

import org.apache.spark.sql.types.StructType

import io.deltaic.protocol.Metadata

class ReadCompatibilitySuite extends munit.FunSuite {

  private def metadata(ddl: String, partitionColumns: String*): Metadata =
    Metadata("m", schemaString = StructType.fromDDL(ddl).json, partitionColumns = partitionColumns)

  /** Whether data of `data` can be read as `read`, when it is older and when it is newer. */
  private def holds(data: Metadata, read: Metadata): (Boolean, Boolean) = (
    ReadCompatibility.holds(data, read, dataIsOlder = true),
    ReadCompatibility.holds(data, read, dataIsOlder = false)
  )

  private val base =
    metadata("id BIGINT, s STRUCT<a: INT>, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, INT>")

  test("the same columns can be read, in any order") {
    assertEquals(holds(base, base), (true, true))
    assertEquals(holds(metadata("a INT, b INT"), metadata("b INT, a INT")), (true, true))
  }

  test("columns may be added with time, at any depth") {
    val wider = metadata(
      "id BIGINT, s STRUCT<a: INT, b: INT>, l ARRAY<STRUCT<x: INT, y: INT>>, m MAP<STRING, INT>, z INT"
    )
    assertEquals(holds(base, wider), (true, false))
    assertEquals(holds(wider, base), (false, true))
  }

  test("a column may not change its type, its case or where it is stored") {
    Seq("id INT", "ID BIGINT", "other BIGINT").foreach { changed =>
      assertEquals(holds(metadata("id BIGINT"), metadata(changed)), (false, false), changed)
    }
    val columns = "id BIGINT, p INT"
    assertEquals(holds(metadata(columns, "p"), metadata(columns)), (false, false))
    assert(ReadCompatibility.ofColumns(metadata(columns, "p"), metadata(columns), true))
  }

  test(
    "a wider type is read if the column's metadata records it, or files do not differ by it"
  ) {
    def readsOlder(before: String, after: String, change: Option[String] = None): Boolean = {
      val typeChanges = change.fold("{}")(c => s"""{"delta.typeChanges":[$c]}""")
      def field(name: String, metadata: String) =
        s"""{"type":"struct","fields":[{"name":"a","type":$name,"nullable":true,"metadata":$metadata}]}"""
      ReadCompatibility.holds(
        Metadata("m", schemaString = field(before, "{}")),
        Metadata("m", schemaString = field(after, typeChanges)),
        dataIsOlder = true,
        readsWidened = true
      )
    }
    def list(element: String) = s"""{"type":"array","elementType":$element,"containsNull":true}"""
    val (float, double) = ("\"float\"", "\"double\"")
    val change = """{"fromType":"float","toType":"double"}"""
    val below = """{"fromType":"float","toType":"double","fieldPath":"element"}"""
    assert(readsOlder(float, double, Some(change)))
    assert(readsOlder(list(float), list(double), Some(below)))
    assert(!readsOlder(float, double))
    assert(!readsOlder(list(float), list(double)))
    assert(!readsOlder(double, float, Some(change)))
    assert(readsOlder("\"byte\"", "\"integer\""))
    assert(!readsOlder("\"integer\"", "\"long\""))
  }

  test("data with nulls can be read only into a nullable column") {
    assertEquals(holds(metadata("a INT"), metadata("a INT NOT NULL")), (false, false))
    assertEquals(holds(metadata("a INT NOT NULL"), metadata("a INT")), (true, true))
  }

  test("under column mapping, another column of the same name is not the same column") {
    def mapped(physical: String): Metadata = {
      val field = s"""{"name":"a","type":"integer","nullable":true,
        "metadata":{"delta.columnMapping.physicalName":"$physical"}}"""
      Metadata("m", schemaString = s"""{"type":"struct","fields":[$field]}""")
    }
    assertEquals(holds(mapped("col-1"), mapped("col-1")), (true, true))
    assertEquals(holds(mapped("col-1"), mapped("col-2")), (false, false))
  }
}
