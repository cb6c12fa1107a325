package io.deltaic.spark.stream

import org.apache.spark.sql.types._

import io.deltaic.spark.schema.PhysicalSchema

class SchemaChangesSuite extends munit.FunSuite {

  private def field(name: String, dataType: DataType, physical: String): StructField = {
    val metadata = new MetadataBuilder().putString(PhysicalSchema.PhysicalName, physical).build()
    StructField(name, dataType, nullable = true, metadata)
  }

  private def struct(fields: StructField*): StructType = StructType(fields)

  private def between(before: StructType, after: StructType): (Seq[String], Seq[String]) = {
    val changes = SchemaChanges.between(before, after)
    (changes.kinds.map { case (kind, text) => s"$kind: $text" }, changes.incompatible)
  }

  test("columns that are added, or dropped and added again, are other columns") {
    val before = struct(field("a", IntegerType, "p1"))
    val added = struct(field("b", StringType, "p2"), field("a", IntegerType, "p1"))
    assertEquals(between(before, added), (Nil, Nil))
    val again = struct(field("a", StringType, "p3"))
    assertEquals(between(before, again), (Seq("Drop: column a dropped"), Nil))
  }

  test("without column mapping, a name identifies a column") {
    val before = struct(StructField("a", IntegerType), StructField("b", StringType))
    val after = struct(StructField("b", StringType), StructField("c", IntegerType))
    assertEquals(between(before, after), (Seq("Drop: column a dropped"), Nil))
    assertEquals(
      between(struct(StructField("a", IntegerType)), struct(field("a", IntegerType, "a"))),
      (Nil, Nil)
    )
  }

  test("two columns that exchange their names are renamed") {
    val before = struct(field("a", IntegerType, "p1"), field("b", IntegerType, "p2"))
    val after = struct(field("b", IntegerType, "p1"), field("a", IntegerType, "p2"))
    val expected = Seq("Rename: column a renamed to b", "Rename: column b renamed to a")
    assertEquals(between(before, after), (expected, Nil))
  }

  test("fields in structs, arrays and maps are found by their paths") {
    def nested(name: String, physical: String, leaf: DataType) =
      struct(field(name, leaf, physical))
    def table(name: String, physical: String, leaf: DataType) = {
      val inner = nested(name, physical, leaf)
      struct(
        field("s", inner, "ps"),
        field("l", ArrayType(inner), "pl"),
        field("m", MapType(StringType, ArrayType(inner)), "pm")
      )
    }
    val paths = Seq("s", "l.element", "m.value.element")
    val before = table("x", "px", IntegerType)
    assertEquals(
      between(before, table("y", "px", LongType))._1,
      paths.flatMap { path =>
        Seq(
          s"Rename: column $path.x renamed to y",
          s"TypeWidening: type of column $path.x from INT to BIGINT"
        )
      }
    )
    val dropped = paths.map(path => s"Drop: column $path.x dropped")
    assertEquals(between(before, table("x", "pz", IntegerType)), (dropped, Nil))
  }

  test("a type that lacks values of the older one is incompatible") {
    def column(dataType: DataType) = struct(field("a", dataType, "p"))
    val pairs = Seq(
      LongType -> IntegerType,
      StringType -> IntegerType,
      DecimalType(10, 2) -> DecimalType(10, 1),
      ArrayType(IntegerType) -> IntegerType,
      IntegerType -> struct(StructField("a", IntegerType))
    )
    pairs.foreach { case (from, to) =>
      val (allowed, incompatible) = between(column(from), column(to))
      assertEquals(allowed, Nil)
      assertEquals(incompatible, Seq(s"a from ${from.sql} to ${to.sql}"))
    }
  }
}
