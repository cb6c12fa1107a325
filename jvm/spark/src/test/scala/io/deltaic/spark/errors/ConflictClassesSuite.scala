package io.deltaic.spark.errors

import org.apache.spark.sql.SparkSession

import io.deltaic.PatientSuite
import io.deltaic.protocol.DeltaicException

class ConflictClassesSuite extends PatientSuite {
  private val condition = "DELTAIC_CONCURRENT_DELETE_DELETE"

  private def conflict(settings: (String, String)*): DeltaicConcurrentModificationException = {
    val builder = SparkSession.builder().master("local[1]")
    settings.foreach { case (key, value) => builder.config(key, value) }
    val spark = builder.getOrCreate()
    val cause = new RuntimeException("first")
    try
      DeltaicException(condition, Map("table" -> "t", "version" -> "3"), cause)
        .asInstanceOf[DeltaicConcurrentModificationException]
    finally spark.stop()
  }

  test("a conflict is of Deltaic's class") {
    assertEquals(
      conflict().getClass.getName,
      classOf[DeltaicConcurrentModificationException].getName
    )
  }

  test("in a server with the plugins its class is named like that of delta-spark, too") {
    val plugins = "a.Plugin,org.apache.spark.sql.connect.delta.DeltaRelationPlugin"
    val found = conflict("spark.connect.extensions.relation.classes" -> plugins)
    assertEquals(
      found.getClass.getName,
      "io.delta.exceptions.ConcurrentDeleteDeleteException"
    )
    assertEquals(found.getCondition, condition)
    assertEquals(found.parameters("version"), "3")
    assertEquals(found.getCause.getMessage, "first")
    // Only this class has it: another of the name, such as delta-spark's, is not hidden.
    intercept[ClassNotFoundException](Class.forName(found.getClass.getName))
  }
}
