package io.deltaic.spark.catalog.definition

import munit.FunSuite
import org.apache.parquet.schema.MessageTypeParser

import io.deltaic.protocol.Metadata

/** Footers against the requirements of a table on its files (Protocol § Iceberg Compatibility V1, V2). */
class IcebergFilesSuite extends FunSuite {

  private def column(name: String, dataType: String, id: Int, nested: String = "{}"): String =
    s"""{"name": "$name", "type": $dataType, "nullable": true, "metadata": {"delta.columnMapping.id": $id,
       | "delta.columnMapping.physicalName": "c-$name", "parquet.field.nested.ids": $nested}}""".stripMargin

  private def map(value: String) =
    s"""{"type": "map", "keyType": "string", "valueType": $value, "valueContainsNull": true}"""

  private val array = """{"type": "array", "elementType": "integer", "containsNull": true}"""

  private val columns = Seq(
    column("id", "\"long\"", 1),
    column("at", "\"timestamp\"", 2),
    column(
      "m",
      map(s"""{"type": "struct", "fields": [${column(
          "a",
          array,
          4,
          """{"c-a.element": 7}"""
        )}]}"""),
      3,
      """{"c-m.key": 5, "c-m.value": 6}"""
    ),
    column("p", "\"date\"", 8)
  )

  private val table = Metadata(
    id = "t",
    schemaString = columns.mkString("""{"type": "struct", "fields": [""", ", ", "]}"),
    partitionColumns = Seq("p"),
    configuration = Map.empty
  )

  private val whole = """message spark_schema {
    optional int64 c-id = 1;
    optional int64 c-at = 2;
    optional group c-m (MAP) = 3 {
      repeated group key_value {
        required binary key = 5;
        optional group value = 6 {
          optional group c-a (LIST) = 4 {
            repeated group list { optional int32 element = 7; }
          }
        }
      }
    }
    optional int32 c-p = 8;
  }"""

  private def problems(footer: String): (Option[String], Option[String]) = {
    val file = MessageTypeParser.parseMessageType(footer)
    (
      IcebergFiles.of(table, compatVersion = 1).problem(file),
      IcebergFiles.of(table, compatVersion = 2).problem(file)
    )
  }

  private def changed(from: String, to: String): (Option[String], Option[String]) = {
    assert(whole.contains(from), from)
    problems(whole.replace(from, to))
  }

  test("a file with all columns, and one written before some of them were added, are valid") {
    assertEquals(problems(whole), (None, None))
    assertEquals(
      problems("message m { optional int64 c-id = 1; optional int32 c-p = 8; }"),
      (None, None)
    )
  }

  // Protocol: writer-icebergcompatv1-3, writer-icebergcompatv2-9
  test("a file without a partition column is invalid for both versions") {
    val both = (Some("partitionColumn"), Some("partitionColumn"))
    assertEquals(changed("optional int32 c-p = 8;", ""), both)
  }

  Seq(
    ("c-id = 1", "c-id"),
    ("c-id = 1", "c-id = 9"),
    ("key = 5", "key"),
    ("value = 6", "value = 7"),
    ("c-a (LIST) = 4", "c-a (LIST)"),
    ("element = 7", "element")
  ).foreach { case (from, to) =>
    test(s"version 2 requires the id in '$from', version 1 does not: '$to'") {
      assertEquals(changed(from, to), (None, Some("fieldId")))
    }
  }

  // Protocol: writer-icebergcompatv2-11
  test("version 2 requires 64-bit timestamps and three-level lists") {
    assertEquals(changed("int64 c-at", "int96 c-at"), (None, Some("timestamp")))
    val older = "repeated group list { optional int32 element = 7; }"
    assertEquals(changed(older, "repeated int32 array = 7;"), (None, Some("layout")))
  }
}
