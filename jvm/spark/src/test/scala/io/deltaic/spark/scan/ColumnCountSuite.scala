package io.deltaic.spark.scan

import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import org.apache.parquet.schema.{LogicalTypeAnnotation, MessageTypeParser, Types}

/** The layouts are those of Parquet § Nested Types and its rules for files of older writers. */
class ColumnCountSuite extends munit.FunSuite {

  private def counted(fields: String): Int =
    ColumnCount.of(MessageTypeParser.parseMessageType(s"message spark_schema { $fields }"))

  test("columns and the fields of structs count") {
    assertEquals(counted("optional int32 a; optional binary b (STRING);"), 2)
    assertEquals(
      counted("optional int32 a; optional group s { optional group t { optional int32 x; } }"),
      4
    )
  }

  for {
    (layout, fields) <- Seq(
      "three levels" -> "repeated group list { optional binary element (STRING); }",
      "Spark's of before" -> "repeated group bag { optional binary array (STRING); }",
      "two levels" -> "repeated binary array (STRING);"
    )
  } test(s"an array counts once: $layout") {
    assertEquals(counted(s"optional int32 a; optional group tags (LIST) { $fields }"), 2)
  }

  for {
    (layout, fields) <- Seq(
      "three levels" ->
        "repeated group list { optional group element { optional int32 x; optional int32 y; } }",
      "an element with several fields" ->
        "repeated group list { optional int32 x; optional int32 y; }",
      "Avro's" -> "repeated group array { optional int32 x; optional int32 y; }"
    )
  } test(s"fields of structs in an array count: $layout") {
    assertEquals(counted(s"optional group s (LIST) { $fields }"), 3)
  }

  test("an element with one field is recognized by its name") {
    for (name <- Seq("array", "s_tuple"))
      assertEquals(
        counted(s"optional group s (LIST) { repeated group $name { optional int32 x; } }"),
        2
      )
  }

  test("an array of arrays counts once") {
    assertEquals(
      counted(
        """optional group s (LIST) { repeated group list { optional group element (LIST) {
          |  repeated group list { optional int32 element; } } } }""".stripMargin
      ),
      1
    )
    assertEquals(
      counted("optional group s (LIST) { repeated group array (LIST) { repeated int32 array; } }"),
      1
    )
  }

  test("a map counts once, and the fields of structs in it") {
    for {
      kind <- Seq("MAP", "MAP_KEY_VALUE")
      entries <- Seq("key_value", "map (MAP_KEY_VALUE)")
    } {
      val repeated = s"repeated group $entries { required binary key (STRING); optional"
      assertEquals(counted(s"optional group m ($kind) { $repeated int32 value; } }"), 1)
      assertEquals(
        counted(s"optional group m ($kind) { $repeated group value { optional int32 x; } } }"),
        2
      )
    }
  }

  test("a variant counts once") {
    val parts = "required binary metadata; optional binary value;"
    assertEquals(counted(s"optional group v { $parts }"), 1)
    assertEquals(counted(s"optional group v { $parts optional int64 typed_value; }"), 1)
    val annotated = Types.optionalGroup()
      .as(LogicalTypeAnnotation.variantType(1.toByte))
      .required(PrimitiveTypeName.BINARY).named("metadata")
      .required(PrimitiveTypeName.BINARY).named("value")
      .named("v")
    assertEquals(ColumnCount.of(Types.buildMessage().addField(annotated).named("m")), 1)
  }

  test("a struct that only looks like a variant counts with its fields") {
    assertEquals(
      counted("optional group v { optional binary metadata (STRING); optional binary value; }"),
      3
    )
    assertEquals(
      counted(
        "optional group v { optional binary metadata; optional binary value; optional int32 x; }"
      ),
      4
    )
  }
}
