package io.deltaic.spark.commit

import munit.FunSuite

import io.deltaic.spark.util.Json

class MessageSuite extends FunSuite {

  private def refusal(record: String, fields: (String, Any)*): String =
    intercept[IllegalArgumentException](Message.of(record)(fields: _*)).getMessage

  test("a record has its declared fields") {
    val operation = OperationInfo("WRITE", Map("mode" -> "Append", "description" -> null))
    assertEquals(operation.json.get("parameters").get("mode").asText, "Append")
    assert(RequestedDefinition().json.get("schema").isNull)
    assertEquals(IdentityValues(Map("id" -> 9L)).json.get("highWaterMarks").get("id").asLong, 9L)
    assertEquals(Plans.ofRows.size, 13)
  }

  test("another field, a missing one and a value of another type are refused, at any depth") {
    val version = "version" -> 1
    assert(refusal("LikeTable", version, "table" -> "t", "more" -> 1).endsWith("no field more"))
    assert(refusal("LikeTable", version).endsWith("LikeTable.table is null"))
    assert(refusal("LikeTable", version, "table" -> 7).endsWith("table is not of type string"))
    val inner = Plans.ofRows.put("alreadyCommitted", "no")
    val plan = intercept[IllegalArgumentException](Message.checked("CommitPlan", inner))
    assert(plan.getMessage.endsWith("CommitPlan.alreadyCommitted is not of type boolean"))
    val list = refusal("MaintenanceState", "failed" -> Seq(1), "newestCheckpoint" -> 3)
    assert(list.endsWith("MaintenanceState.failed is not of type string"))
    assert(refusal("Nothing", version).endsWith("Nothing is not declared"))
  }

  test("a field that may be null may be absent") {
    val record = Json.obj("version" -> 1, "timestampMs" -> 2)
    assertEquals(Message.checked("CommitRecord", record), record)
  }
}
