package io.deltaic.spark.stream

import org.apache.spark.sql.connector.read.streaming.ReadLimit

import io.deltaic.protocol.DeltaicThrowable

class StreamOffsetSuite extends munit.FunSuite {

  private def json(source: Int, version: Long, index: Long, starting: Boolean): String =
    s"""{"sourceVersion":$source,"reservoirId":"t","reservoirVersion":$version,""" +
      s""""index":$index,"isStartingVersion":$starting}"""

  private def refused(json: String): String = {
    val error = intercept[DeltaicThrowable](StreamOffset.parse("/table", json))
    assertEquals(error.condition, "DELTAIC_STREAM_OFFSET_MALFORMED")
    assert(error.getMessage.contains("/table"), error.getMessage)
    error.parameters("reason")
  }

  test("the JSON is that of delta-spark, both ways") {
    val offset = StreamOffset("t", 7, 3, inSnapshot = true)
    assertEquals(offset.json(), json(1, 7, 3, starting = true))
    assertEquals(StreamOffset.parse("/table", offset.json()), offset)
  }

  test("an offset is equal to another form of the same JSON") {
    val offset = StreamOffset.ofCommit("t", 7)
    assertEquals(offset.json(), json(1, 7, -1, starting = false))
    val other = new org.apache.spark.sql.connector.read.streaming.Offset {
      override def json(): String = offset.json()
    }
    assert(offset == other)
  }

  test("the newer form of a start is read") {
    val offset = StreamOffset.parse("/table", json(3, 7, -100, starting = false))
    assertEquals(offset, StreamOffset.ofCommit("t", 7))
    assertEquals(StreamOffset.parse("/table", json(3, 7, 2, starting = false)).index, 2L)
  }

  test("a change of a tracked schema is between the start of a commit and its files") {
    val places =
      Seq(StreamOffset.Base, StreamOffset.SchemaChange, StreamOffset.AfterSchemaChange, 0L)
    val offsets = places.map(StreamOffset("t", 7, _, inSnapshot = false))
    offsets.zip(offsets.tail).foreach { case (before, after) => assert(after.isAfter(before)) }
    assertEquals(offsets.map(_.lastVersion), Seq(6L, 6L, 6L, 7L))
    assertEquals(offsets(1).json(), json(3, 7, -20, starting = false))
    assertEquals(offsets(2).json(), json(3, 7, -19, starting = false))
    offsets.foreach(offset => assertEquals(StreamOffset.parse("/table", offset.json()), offset))
  }

  test("an invalid or unsupported offset is rejected") {
    assert(refused("{").nonEmpty)
    assertEquals(refused("{}"), "it has no field sourceVersion")
    assert(refused(json(2, 7, 0, starting = false)).contains("sourceVersion 2"))
    assert(refused(json(4, 7, 0, starting = false)).contains("sourceVersion 4"))
    assert(refused(json(3, 7, -1, starting = false)).contains("index -1 is unknown"))
    assert(refused(json(1, 7, 0, starting = false).replace("7", "\"7\"")).contains("no number"))
  }

  /** How many of ten files fit, of 10 bytes each. */
  private def admitted(limit: ReadLimit): Int = {
    val limits = AdmissionLimits.of(limit)
    Iterator.fill(10)(limits.admits(1, 10L)).takeWhile(identity).size
  }

  test("a batch has as many files and bytes as its limits allow, and at least one file") {
    assertEquals(admitted(ReadLimit.allAvailable()), 10)
    assertEquals(admitted(ReadLimit.maxFiles(3)), 3)
    assertEquals(admitted(ReadLimit.maxBytes(1)), 1)
    assertEquals(admitted(ReadLimit.maxBytes(25)), 3)
    val both = ReadLimit.compositeLimit(Array(ReadLimit.maxFiles(4), ReadLimit.maxBytes(15)))
    assertEquals(admitted(both), 2)
  }

  test("the start of a commit does not count towards limits, but needs some left") {
    val limits = AdmissionLimits.of(ReadLimit.maxFiles(1))
    assert(limits.admits(0, 0L))
    assert(limits.admits(1, 10L))
    assert(!limits.admits(0, 0L))
  }
}
