package io.delta.tables

import io.delta.DeltaSession
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.types.{IntegerType, LongType, StringType, StructField, StructType}

class DeltaTableBuilderSuite extends munit.FunSuite with DeltaSession {

  directory.test("a table is created with all that the builder takes") { dir =>
    val path = dir.resolve("built").toString
    val table = DeltaTable.create(spark)
      .location(path)
      .addColumn("id", "BIGINT", nullable = false)
      .addColumn("name", StringType)
      .addColumn("n", "INT")
      .addColumn("m", IntegerType, nullable = false)
      .addColumn(
        DeltaTable.columnBuilder(spark, "twice").dataType(LongType)
          .generatedAlwaysAs("id * 2").comment("of id").build()
      )
      .addColumn(
        DeltaTable.columnBuilder("key").dataType("BIGINT")
          .generatedByDefaultAsIdentity(10, 5).build()
      )
      .addColumns(new StructType().add("p", "string").add("q", "date"))
      .partitionedBy("p")
      .comment("built in Scala")
      .property("delta.appendOnly", "true")
      .execute()
    spark.sql(
      s"INSERT INTO delta.`$path` (id, name, n, m, p, q) VALUES (3, 'a', 1, 2, 'x', DATE'2026-01-01')"
    )
    val row = table.toDF.select("twice", "key").head()
    assertEquals((row.getLong(0), row.getLong(1)), (6L, 10L))
    val fields = table.toDF.schema
    assertEquals(
      fields.fieldNames.toSeq,
      Seq("id", "name", "n", "m", "twice", "key", "p", "q")
    )
    assertEquals(fields("twice").getComment(), Some("of id"))
    val detail = table.detail().head()
    assertEquals(detail.getAs[String]("description"), "built in Scala")
    assertEquals(detail.getAs[Seq[String]]("partitionColumns"), Seq("p"))
    assertEquals(detail.getAs[Map[String, String]]("properties")("delta.appendOnly"), "true")
    val noId = intercept[SparkThrowable with Exception] {
      spark.sql(s"INSERT INTO delta.`$path` (id, m) VALUES (null, 1)")
    }
    assert(noId.getMessage.toLowerCase.contains("null"), noId.getMessage)
  }

  test("a named table is created once, replaced, and clustered") {
    def columns(builder: DeltaTableBuilder) =
      builder.tableName("built_by_name").addColumn("id", "BIGINT").addColumn("v", "BIGINT")
    try {
      columns(DeltaTable.createIfNotExists()).execute()
      spark.sql("INSERT INTO built_by_name VALUES (1, 2)")
      assertEquals(columns(DeltaTable.createIfNotExists(spark)).execute().toDF.count(), 1L)
      intercept[AnalysisException](columns(DeltaTable.create()).execute())
      assertEquals(columns(DeltaTable.replace()).execute().toDF.count(), 0L)
      val clustered = columns(DeltaTable.createOrReplace(spark)).clusterBy("v", "id").execute()
      assertEquals(
        clustered.detail().select("clusteringColumns").head().getSeq[String](0),
        Seq("v", "id")
      )
      columns(DeltaTable.createOrReplace()).execute()
      columns(DeltaTable.replace(spark)).execute()
    } finally spark.sql("DROP TABLE IF EXISTS built_by_name")
  }

  test("a column has the metadata of delta-spark") {
    val identity = DeltaTable.columnBuilder(spark, "id").dataType("BIGINT")
      .generatedAlwaysAsIdentity(-1, 3).nullable(false).build()
    assertEquals(identity.metadata.getLong("delta.identity.start"), -1L)
    assertEquals(identity.metadata.getLong("delta.identity.step"), 3L)
    assert(!identity.metadata.getBoolean("delta.identity.allowExplicitInsert"))
    assert(!identity.nullable)
    val computed = DeltaTable.columnBuilder(spark, "y").dataType("INT")
      .generatedAlwaysAs("year(day)").build()
    assertEquals(computed.metadata.getString("delta.generationExpression"), "year(day)")
    assertEquals(
      DeltaTable.columnBuilder("c").dataType("CHAR(3)").build(),
      StructField("c", org.apache.spark.sql.types.CharType(3))
    )
  }

  test("what is missing or contradicts itself is named") {
    def reason(build: => Any): String = {
      val error = intercept[AnalysisException](build)
      assertEquals(error.getCondition, "DELTAIC_TABLE_BUILDER_INVALID")
      error.getMessage
    }
    def column = DeltaTable.columnBuilder("c")
    val noType = reason(column.build())
    assert(noType.contains("data type of the column c was not provided"), noType)
    val noName = reason(DeltaTable.create().execute())
    assert(noName.contains("Table name or location has to be specified"), noName)
    val noStep = reason(column.generatedAlwaysAsIdentity(1, 0))
    assert(noStep.contains("requires step to be non-zero"), noStep)
    val both = reason(column.generatedAlwaysAs("1").generatedByDefaultAsIdentity())
    assert(both.contains("can have only one"), both)
  }
}
