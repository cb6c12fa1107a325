package io.deltaic.spark.schema

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import munit.ScalaCheckSuite
import org.scalacheck.Gen
import org.scalacheck.Prop.forAll

import io.deltaic.Damage
import io.deltaic.protocol.{DeltaicThrowable, Metadata => TableMetadata, Protocol}

/** Schemas with arbitrary content are rejected with an error of Deltaic, or read. */
class MalformedSchemaSuite extends ScalaCheckSuite {

  override def scalaCheckTestParameters: org.scalacheck.Test.Parameters =
    super.scalaCheckTestParameters.withMinSuccessfulTests(500)

  private val mapper = new ObjectMapper()

  private def field(name: String, id: Int, dataType: String, more: String = ""): String =
    s"""{"name":"$name","type":$dataType,"nullable":true,"metadata":{
       |"delta.columnMapping.id":$id,"delta.columnMapping.physicalName":"col-$id"$more}}""".stripMargin

  private val leaf = s"""{"type":"struct","fields":[${field("x", 5, "\"decimal(10,2)\"")}]}"""

  private val schema: String = Seq(
    field("id", 1, "\"long\"", ""","delta.identity.start":1,"delta.identity.step":2"""),
    field("p", 2, "\"string\"", ""","CURRENT_DEFAULT":"'a'""""),
    field("g", 3, "\"date\"", ""","delta.generationExpression":"CAST(t AS DATE)""""),
    field("s", 4, leaf),
    field(
      "m",
      6,
      s"""{"type":"map","keyType":"string","valueType":$leaf,"valueContainsNull":true}"""
    ),
    field("a", 7, """{"type":"array","elementType":"integer","containsNull":true}"""),
    field(
      "w",
      8,
      "\"integer\"",
      ""","delta.typeChanges":[{"toType":"integer","fromType":"short","tableVersion":2}]"""
    )
  ).mkString("""{"type":"struct","fields":[""", ",", "]}")

  private val features = Set(
    "columnMapping",
    "identityColumns",
    "generatedColumns",
    "allowColumnDefaults",
    "typeWidening",
    "rowTracking"
  )
  private val protocol = Protocol(3, 7, Some(Set("columnMapping", "typeWidening")), Some(features))

  private def check(schemaString: String, configuration: Map[String, String]): Unit =
    try {
      TableSchema.of(
        "/t",
        protocol,
        TableMetadata("i", schemaString = schemaString, partitionColumns = Seq("p"))
          .copy(configuration = configuration)
      )
      ()
    } catch { case e: DeltaicThrowable => assert(e.condition.startsWith("DELTAIC_"), e) }

  private val configuration = Map("delta.columnMapping.mode" -> "name")

  test("undamaged, it is read") {
    assertEquals(
      TableSchema.of(
        "/t",
        protocol,
        TableMetadata("i", schemaString = schema, configuration = configuration)
      ).stored.size,
      7
    )
  }

  test("a null where type changes are listed") {
    val column = field("x", 1, "\"long\"").replace(
      "\"metadata\":{",
      "\"metadata\":{\"delta.typeChanges\":null,"
    )
    assert(column.contains("typeChanges"))
    check(s"""{"type":"struct","fields":[$column]}""", configuration)
  }

  property("values of other kinds") {
    forAll(Damage.json(mapper.readTree(schema)))(json => check(json.toString, configuration))
  }

  property("damaged string") {
    forAll(Damage.bytes(schema.getBytes))(bytes => check(new String(bytes), configuration))
  }

  property("properties of any value") {
    val names = Seq(
      "delta.columnMapping.mode",
      "delta.enableRowTracking",
      "delta.rowTracking.materializedRowIdColumnName",
      "delta.rowTracking.materializedRowCommitVersionColumnName"
    )
    val values = Gen.oneOf(Gen.oneOf("", "id", "none", "NAME", "true", "-1", "x`y"), Gen.asciiStr)
    forAll(Gen.listOf(Gen.zip(Gen.oneOf(names), values)))(set => check(schema, set.toMap))
  }

  test("types nested without end") {
    val deep = 20000
    check(
      field("x", 1, """{"type":"array","elementType":""" * deep + "\"long\"")
        .prependedAll("""{"type":"struct","fields":["""),
      configuration
    )
    val whole: ObjectNode = mapper.createObjectNode().put("type", "struct")
    whole.putArray("fields").addObject().put("name", "x").put("type", "array<" * deep)
    check(whole.toString, configuration)
  }
}
