package io.delta.tables

import scala.jdk.CollectionConverters._

import io.delta.DeltaSession
import io.delta.implicits._
import org.apache.spark.sql.functions.{col, lit}
import org.apache.spark.sql.{AnalysisException, Column}

import io.deltaic.spark.errors.DeltaicRuntimeException

class DeltaTableSuite extends munit.FunSuite with DeltaSession {

  directory.test("a table is found by its path, by its name and in the active session") { dir =>
    val path = created(dir)
    assert(DeltaTable.isDeltaTable(spark, path))
    assert(!DeltaTable.isDeltaTable(dir.toString))
    spark.sql(s"CREATE TABLE by_name USING delta LOCATION '$path'")
    try
      Seq(
        DeltaTable.forPath(path),
        DeltaTable.forPath(spark, path),
        DeltaTable.forPath(spark, path, Map("fs.test.key" -> "value")),
        DeltaTable.forPath(spark, path, Map("fs.test.key" -> "value").asJava),
        DeltaTable.forName("by_name"),
        DeltaTable.forName(spark, s"delta.`$path`")
      ).foreach(table => assertEquals(table.toDF.count(), 10L))
    finally spark.sql("DROP TABLE by_name")
  }

  directory.test("a path without a table and a name of another setting are errors") { dir =>
    val missing = intercept[org.apache.spark.sql.AnalysisException] {
      DeltaTable.forPath(spark, dir.toString)
    }
    assertEquals(missing.getCondition, "DELTAIC_NOT_A_TABLE")
    val path = created(dir)
    val setting = intercept[IllegalArgumentException] {
      DeltaTable.forPath(spark, path, Map("spark.sql.ansi.enabled" -> "secret"))
    }
    assert(setting.getMessage.contains("spark.sql.ansi.enabled"), setting.getMessage)
    assert(!setting.getMessage.contains("secret"), setting.getMessage)
  }

  directory.test("delete takes a string, a Column of the table, and no condition") { dir =>
    val path = created(dir)
    val table = DeltaTable.forPath(spark, path)
    table.delete("id = 1")
    table.delete(table.toDF.col("id") === 2)
    table.as("t").delete(col("t.id") === 3)
    assertEquals(rows(path).map(_._1), Seq(0L, 4L, 5L, 6L, 7L, 8L, 9L))
    table.delete()
    assertEquals(rows(path), Seq.empty)
  }

  directory.test("update takes Columns and SQL, of Scala and of Java, with and without condition") {
    dir =>
      val path = created(dir, ids = 4)
      val table = DeltaTable.forPath(spark, path)
      table.update(Map("v" -> (col("v") + 1)))
      table.update(Map("v" -> lit(7L)).asJava)
      table.update(col("id") === 0, Map("v" -> lit(100L)))
      table.update(col("id") === 1, Map("v" -> lit(101L)).asJava)
      assertEquals(rows(path), Seq(0L -> 100L, 1L -> 101L, 2L -> 7L, 3L -> 7L))
      table.updateExpr(Map("v" -> "v + id"))
      table.updateExpr(Map("v" -> "v * 2").asJava)
      table.updateExpr("id = 2", Map("v" -> "0"))
      table.updateExpr("id = 3", Map("v" -> "-1").asJava)
      assertEquals(rows(path), Seq(0L -> 200L, 1L -> 204L, 2L -> 0L, 3L -> -1L))
  }

  directory.test("merge has all clauses, in the order in which they were added") { dir =>
    val path = created(dir, ids = 6)
    val source = spark.sql(
      "SELECT * FROM VALUES (0L, 50L), (1L, 51L), (2L, 52L), (8L, 58L), (9L, 59L) AS s(id, v)"
    )
    val builder = DeltaTable.forPath(spark, path).as("t").merge(source.as("s"), "t.id = s.id")
      .whenMatched("t.id = 0").delete()
      .whenMatched(col("t.id") === 1).updateExpr(Map("v" -> "s.v + t.v"))
      .whenMatched().updateAll()
      .whenNotMatched("s.id = 8").insertExpr(Map("id" -> "s.id", "v" -> "-s.v"))
      .whenNotMatched().insertAll()
      .whenNotMatchedBySource("t.id = 3").delete()
    val unused = builder.whenNotMatchedBySource().delete()
    assert(unused != builder)
    val counts = builder
      .whenNotMatchedBySource(col("t.id") === 4).update(Map("v" -> lit(0L)))
      .execute().head()
    assertEquals(
      rows(path),
      Seq(1L -> 53L, 2L -> 52L, 4L -> 0L, 5L -> 10L, 8L -> -58L, 9L -> 59L)
    )
    val numbers = Seq("affected", "updated", "deleted", "inserted")
    assertEquals(
      numbers.map(n => counts.getAs[Long](s"num_${n}_rows")),
      Seq(7L, 3L, 2L, 2L)
    )
  }

  directory.test("merge of a table with itself, an empty update, and clauses that no row reaches") {
    dir =>
      val path = created(dir, ids = 4)
      val table = DeltaTable.forPath(spark, path)
      val self = table.toDF
      table.as("t").merge(self.as("s"), "t.id = s.id AND s.id > 1")
        .whenMatched().update(Map.empty[String, Column])
        .whenMatched().update(Map("v" -> (col("s.v") + 100)))
        .execute()
      assertEquals(rows(path), Seq(0L -> 0L, 1L -> 2L, 2L -> 104L, 3L -> 106L))
      val none = table.as("t").merge(self.as("s"), "t.id = s.id")
      assert(intercept[AnalysisException](none.execute()).getMessage.contains("clause"))
      val shadowed = none.whenMatched().delete().whenMatched("t.id = 1").updateAll()
      val unreached = intercept[AnalysisException](shadowed.execute())
      assert(unreached.getMessage.contains("no row would reach"), unreached.getMessage)
  }

  directory.test("merge takes the maps of Java, and adds columns of the source") { dir =>
    val path = created(dir, ids = 2)
    val source = spark.sql("SELECT * FROM VALUES (1L, 5L, 'b'), (2L, 6L, 'c') AS s(id, v, name)")
    val table = DeltaTable.forPath(spark, path).alias("t")
    table.merge(source.as("s"), col("t.id") === col("s.id"))
      .whenMatched().update(Map("v" -> col("s.v")).asJava)
      .whenNotMatched().insert(Map("id" -> col("s.id"), "v" -> col("s.v")).asJava)
      .whenNotMatchedBySource().updateExpr(Map("v" -> "t.v - 1").asJava)
      .execute()
    assertEquals(rows(path), Seq(0L -> -1L, 1L -> 5L, 2L -> 6L))
    table.merge(source.as("s"), "t.id = s.id")
      .withSchemaEvolution().whenMatched().updateAll().whenNotMatched().insertAll().execute()
    val names = DeltaTable.forPath(spark, path).toDF.orderBy("id").select("name").collect()
    assertEquals(names.map(_.getString(0)).toSeq, Seq(null, "b", "c"))
  }

  directory.test("history, detail, restore and vacuum") { dir =>
    val path = created(dir)
    val table = DeltaTable.forPath(spark, path)
    table.delete("id < 5")
    assertEquals(
      table.history().select("operation").collect().map(_.getString(0)).toSeq,
      Seq("DELETE", "WRITE", "CREATE TABLE")
    )
    assertEquals(table.history(1).select("version").head().getLong(0), 2L)
    val detail = table.detail().select("format", "numFiles").head()
    assertEquals((detail.getString(0), detail.getLong(1)), ("delta", 1L))
    table.restoreToVersion(1)
    assertEquals(rows(path).size, 10)
    val time = table.history().filter("version = 2").select("timestamp").head().getTimestamp(0)
    table.restoreToTimestamp(time.toString)
    assertEquals(rows(path).size, 5)
    assertEquals(table.vacuum().count(), 0L)
    table.vacuum(1000)
    intercept[IllegalArgumentException](table.vacuum(0))
    assertEquals(rows(path).size, 5)
  }

  directory.test("optimize compacts, orders rows, and takes a condition on partitions") { dir =>
    val path = dir.resolve("p").toString
    spark.sql(s"CREATE TABLE delta.`$path` (id BIGINT, v BIGINT) USING delta PARTITIONED BY (v)")
    (0 until 3).foreach { _ =>
      spark.range(0, 10, 1, 1).selectExpr("id", "id % 2 AS v")
        .write.format("delta").mode("append").save(path)
    }
    val table = DeltaTable.forPath(spark, path)
    def files = table.detail().select("numFiles").head().getLong(0)
    assertEquals(files, 6L)
    table.optimize().where("v = 0").executeCompaction()
    assertEquals(files, 4L)
    table.optimize().executeZOrderBy("id")
    assertEquals(files, 2L)
    assertEquals(rows(path).size, 30)
  }

  directory.test("features are added and dropped, and the protocol is upgraded") { dir =>
    val path = created(dir)
    val table = DeltaTable.forPath(spark, path)
    def features = table.detail().select("tableFeatures").head().getSeq[String](0)
    def versions = {
      val row = table.detail().select("minReaderVersion", "minWriterVersion").head()
      (row.getInt(0), row.getInt(1))
    }
    table.upgradeTableProtocol(2, 5)
    assertEquals(versions, (2, 5))
    table.addFeatureSupport("deletionVectors")
    assert(features.contains("deletionVectors"), features)
    table.dropFeatureSupport("deletionVectors")
    assert(!features.contains("deletionVectors"), features)
    Seq[String => Unit](table.addFeatureSupport, table.dropFeatureSupport(_, true)).foreach {
      call =>
        val unknown = intercept[DeltaicRuntimeException](call("noSuchFeature"))
        assertEquals(unknown.getCondition, "DELTAIC_UNKNOWN_FEATURE")
        assertEquals(unknown.getMessageParameters.get("feature"), "noSuchFeature")
    }
  }

  directory.test("a table is cloned to a path and to a name, at its versions") { dir =>
    val path = created(dir)
    val table = DeltaTable.forPath(spark, path)
    table.delete("id > 0")
    val none = Map.empty[String, String]
    def target(name: String) = dir.resolve(name).toString
    assertEquals(table.clone(target("a"), true).toDF.count(), 1L)
    assertEquals(table.clone(target("a"), false, true).toDF.count(), 1L)
    val set = Map("delta.appendOnly" -> "true")
    val locked = table.clone(target("b"), false, true, set)
    assertEquals(
      locked.detail().select("properties").head().getMap[String, String](0).toMap,
      set
    )
    val properties = new java.util.HashMap[String, String]()
    assertEquals(table.clone(target("c"), true, true, properties).toDF.count(), 1L)
    assertEquals(table.cloneAtVersion(1, target("d"), true).toDF.count(), 10L)
    assertEquals(table.cloneAtVersion(1, target("d"), false, true).toDF.count(), 10L)
    assertEquals(table.cloneAtVersion(0, target("d"), true, true, none).toDF.count(), 0L)
    assertEquals(table.cloneAtVersion(1, target("d"), true, true, properties).toDF.count(), 10L)
    val time =
      table.history().filter("version = 1").select("timestamp").head().getTimestamp(0).toString
    assertEquals(table.cloneAtTimestamp(time, target("e"), true).toDF.count(), 10L)
    assertEquals(table.cloneAtTimestamp(time, target("e"), false, true).toDF.count(), 10L)
    assertEquals(table.cloneAtTimestamp(time, target("e"), true, true, none).toDF.count(), 10L)
    assertEquals(
      table.cloneAtTimestamp(time, target("e"), true, true, properties).toDF.count(),
      10L
    )
    try assertEquals(table.clone("cloned_by_name", false).toDF.count(), 1L)
    finally spark.sql("DROP TABLE IF EXISTS cloned_by_name")
  }

  directory.test("Parquet files become a table, and manifests are written") { dir =>
    def parquet(name: String) = {
      val path = dir.resolve(name).toString
      spark.range(0, 4, 1, 1).selectExpr("id", "id % 2 AS v")
        .write.partitionBy("v").parquet(path)
      path
    }
    val (first, second) = (parquet("first"), parquet("second"))
    val partitioning = new org.apache.spark.sql.types.StructType().add("v", "bigint")
    DeltaTable.convertToDelta(spark, s"parquet.`$first`", "v BIGINT")
    val table = DeltaTable.convertToDelta(spark, s"parquet.`$second`", partitioning)
    Seq(first, second).foreach(path => assertEquals(rows(path).map(_._1), Seq(0L, 1L, 2L, 3L)))
    table.generate("symlink_format_manifest")
    assert(dir.resolve("second/_symlink_format_manifest/v=0/manifest").toFile.isFile)
    val plain = dir.resolve("plain").toString
    spark.range(3).write.parquet(plain)
    assertEquals(DeltaTable.convertToDelta(spark, s"parquet.`$plain`").toDF.count(), 3L)
  }

  directory.test("implicits read and write, in batches and in streams") { dir =>
    val (path, copy) = (dir.resolve("a").toString, dir.resolve("b").toString)
    spark.range(5).write.delta(path)
    assertEquals(spark.read.delta(path).count(), 5L)
    val query = spark.readStream.delta(path).writeStream
      .option("checkpointLocation", dir.resolve("checkpoint").toString)
      .trigger(org.apache.spark.sql.streaming.Trigger.AvailableNow())
      .delta(copy)
    assert(query.awaitTermination(60000))
    assertEquals(spark.read.delta(copy).count(), 5L)
  }

  directory.test("a table that was sent to an executor says so") { dir =>
    val sent = {
      val bytes = new java.io.ByteArrayOutputStream
      new java.io.ObjectOutputStream(bytes).writeObject(DeltaTable.forPath(spark, created(dir)))
      new java.io.ObjectInputStream(new java.io.ByteArrayInputStream(bytes.toByteArray))
        .readObject().asInstanceOf[DeltaTable]
    }
    val error = intercept[IllegalStateException](sent.toDF)
    assertEquals(error.getMessage, "DeltaTable cannot be used in executors")
  }

  test("the version is that of Deltaic") {
    assertEquals(io.delta.VERSION, io.deltaic.spark.PythonApi.version())
  }
}
