package io.delta

import org.apache.spark.sql.SparkSession

/** Runs the examples of the guide; the default package, which they are in, is only visible by reflection. */
class ExamplesSuite extends munit.FunSuite with DeltaSession {

  private def run(example: String, path: String): Unit = {
    Class.forName(example).getMethod("run", classOf[SparkSession], classOf[String])
      .invoke(null, spark, path)
    ()
  }

  private def states(path: String): Map[String, Long] =
    spark.read.format("delta").load(path).groupBy("state").count().collect()
      .map(row => row.getString(0) -> row.getLong(1)).toMap

  directory.test("OrdersJob, in Scala") { dir =>
    val path = dir.resolve("orders").toString
    run("OrdersJob", path)
    assertEquals(states(path), Map("open" -> 90L, "shipped" -> 10L))
  }

  directory.test("OrdersReport, in Java") { dir =>
    val path = dir.resolve("orders").toString
    run("OrdersReport", path)
    assertEquals(states(path), Map("open" -> 6L, "shipped" -> 3L, "returned" -> 1L))
  }
}
