package io.deltaic.spark.schema

import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference,
  Expression,
  GetStructField,
  GreaterThan,
  Literal
}
import org.apache.spark.sql.types._

import io.deltaic.protocol.{Metadata => TableMetadata, Protocol}
import io.deltaic.spark.scan.ParquetPredicates

/** The columns requested from the Parquet reader, as a function of the table's metadata alone. */
class TableSchemaSuite extends munit.FunSuite {

  private def mapped(name: String, dataType: DataType, id: Long): StructField = StructField(
    name,
    dataType,
    nullable = false,
    new MetadataBuilder()
      .putLong("delta.columnMapping.id", id)
      .putString("delta.columnMapping.physicalName", s"col-$id")
      .putString("comment", name)
      .build()
  )

  private val leaf = StructType(Seq(mapped("x", IntegerType, 4), mapped("y", StringType, 5)))

  private val columns = StructType(
    Seq(
      mapped("p", StringType, 1),
      mapped("s", StructType(Seq(mapped("t", leaf, 3))), 2),
      mapped("m", MapType(leaf, ArrayType(leaf), valueContainsNull = false), 6)
    )
  )

  private def schema(mode: String, stored: StructType = columns): TableSchema = TableSchema.of(
    "/t",
    Protocol(2, 5),
    TableMetadata(
      id = "i",
      schemaString = stored.json,
      partitionColumns = Vector("p"),
      configuration = Map("delta.columnMapping.mode" -> mode)
    )
  )

  private val wanted =
    new StructType().add("s", new StructType().add("t", new StructType().add("Y", StringType)))

  // Protocol: reader-column-mapping-8
  test("a pruned nested column has physical names and is nullable at every level") {
    val requested = schema("name").inFiles(wanted.head)
    val expected = new StructType().add("col-3", new StructType().add("col-5", StringType))
    assertEquals(requested, StructField("col-2", expected))
  }

  // Protocol: reader-column-mapping-3
  test("mode id requests columns by field ids alone, under names that no file has") {
    def named(n: Long) = s"__deltaic_field_id_$n"
    def id(n: Long) = new MetadataBuilder().putLong("parquet.field.id", n).build()
    val requested = schema("id").inFiles(wanted.head)
    val deep = StructType(Seq(StructField(named(5), StringType, nullable = true, id(5))))
    val expected = StructType(Seq(StructField(named(3), deep, nullable = true, id(3))))
    assertEquals(requested, StructField(named(2), expected, nullable = true, id(2)))
  }

  test("keys and values of maps and elements of arrays are renamed") {
    val visible = schema("name").all("m")
    val renamed = new StructType().add("col-4", IntegerType).add("col-5", StringType)
    assertEquals(
      schema("name").inFiles(visible),
      StructField("col-6", MapType(renamed, ArrayType(renamed)))
    )
  }

  // Protocol: reader-column-mapping-2
  test("without mapping the names are the table's own") {
    assertEquals(
      schema("none").inFiles(wanted.head).dataType.catalogString,
      "struct<t:struct<y:string>>"
    )
    assertEquals(schema("none").logName("p"), "p")
    assertEquals(schema("name").logName("p"), "col-1")
  }

  test("users see all column metadata except that of column mapping") {
    val comments = schema("name").all
    assertEquals(comments("s").metadata.json, """{"comment":"s"}""")
    assert(!comments.json.contains("columnMapping"), comments.json)
  }

  private def handedOver(mode: String, stored: StructType, filters: Expression*): Seq[String] =
    ParquetPredicates.of(filters, schema(mode, stored)).map(_.sql)

  private def below(column: StructField, names: String*): Expression =
    names.foldLeft[Expression](AttributeReference(column.name, column.dataType)()) {
      (parent, name) =>
        val struct = parent.dataType.asInstanceOf[StructType]
        GetStructField(parent, struct.fieldIndex(name), Some(name))
    }

  test("filters are pushed down in physical names, except on partitions or in mode id") {
    val nested = GreaterThan(below(columns("s"), "t", "x"), Literal(1))
    val partition = GreaterThan(below(columns("p")), Literal("a"))
    val pushed = ParquetPredicates.of(Seq(nested, partition), schema("name"))
    val names = pushed.flatMap(_.collect {
      case a: AttributeReference => a.name
      case f: GetStructField => f.childSchema(f.ordinal).name
    })
    assertEquals(names.toSet, Set("col-2", "col-3", "col-4"))
    assertEquals(pushed.size, 1)
    assertEquals(handedOver("id", columns, nested), Nil)
    assertEquals(handedOver("none", columns, nested).size, 1)
  }

  test("a filter on a column whose type was changed is not pushed down") {
    val changes = """{"delta.typeChanges":[{"fromType":"integer","toType":"decimal(12,2)"}]}"""
    val changed = StructField("w", DecimalType(12, 2), nullable = true, Metadata.fromJson(changes))
    val stored = new StructType()
      .add("p", StringType)
      .add(changed)
      .add("s", new StructType().add(changed).add("same", DecimalType(12, 2)))
    val constant = Literal(Decimal(new java.math.BigDecimal("1.50"), 12, 2), DecimalType(12, 2))
    def above(e: Expression) = GreaterThan(e, constant)
    assertEquals(handedOver("none", stored, above(below(stored("w")))), Nil)
    assertEquals(handedOver("none", stored, above(below(stored("s"), "w"))), Nil)
    assertEquals(handedOver("none", stored, above(below(stored("s"), "same"))).size, 1)
  }
}
