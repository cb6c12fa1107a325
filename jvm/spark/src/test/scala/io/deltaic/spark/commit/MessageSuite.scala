package io.deltaic.spark.commit

import munit.FunSuite
import org.apache.spark.SparkThrowable

import io.deltaic.protocol.DeltaicThrowable
import io.deltaic.spark.util.Json

class MessageSuite extends FunSuite {

  private def refusal(record: String, fields: (String, Any)*): String =
    refusal(Message.of(record)(fields: _*))

  /** The record and reason of the error. */
  private def refusal(message: => Any): String = {
    val e = intercept[SparkThrowable with DeltaicThrowable](message)
    assertEquals(e.condition, "DELTAIC_INVALID_BRIDGE_MESSAGE")
    assert(e.isInternalError)
    assert(!e.getMessage.contains("<"), e.getMessage)
    s"${e.parameters("record")}: ${e.parameters("reason")}"
  }

  test("a record has its declared fields") {
    val operation = OperationInfo("WRITE", Map("mode" -> "Append", "description" -> null))
    assertEquals(operation.json.get("parameters").get("mode").asText, "Append")
    assert(RequestedDefinition().json.get("schema").isNull)
    assertEquals(IdentityValues(Map("id" -> 9L)).json.get("highWaterMarks").get("id").asLong, 9L)
    assertEquals(Plans.ofRows.size, 13)
  }

  test("another field, a missing one and a value of another type are refused, at any depth") {
    val version = "version" -> 1
    assertEquals(
      refusal("LikeTable", version, "table" -> "t", "more" -> 1),
      "LikeTable: the field more is not declared"
    )
    assertEquals(refusal("LikeTable", version), "LikeTable: the field table is null")
    assertEquals(
      refusal("LikeTable", version, "table" -> 7),
      "LikeTable: the field table is not of type string"
    )
    val inner = Plans.ofRows.put("alreadyCommitted", "no")
    assertEquals(
      refusal(Message.checked("CommitPlan", inner)),
      "CommitPlan: the field alreadyCommitted is not of type boolean"
    )
    assertEquals(
      refusal("MaintenanceState", "failed" -> Seq(1), "newestCheckpoint" -> 3),
      "MaintenanceState: the field failed is not of type string"
    )
    assertEquals(refusal("Nothing", version), "Nothing: the record is not declared")
    val change = Json.obj("column" -> Seq("id"), "nullable" -> "no")
    assertEquals(
      refusal("AlterColumns", "table" -> "t", "columns" -> Seq(change)),
      "ColumnChange: the field nullable is not of type boolean?"
    )
  }

  test("a field that may be null may be absent") {
    val record = Json.obj("version" -> 1, "timestampMs" -> 2)
    assertEquals(Message.checked("CommitRecord", record), record)
  }
}
