package io.deltaic.protocol

import munit.ScalaCheckSuite
import org.scalacheck.Gen
import org.scalacheck.Prop.forAll

class ActionJsonSuite extends ScalaCheckSuite {

  private val text = Gen.oneOf(
    Gen.alphaNumStr,
    Gen.oneOf("", "a b", "é世\u0001", "\"quoted\"\n", "p=1/f%20.parquet")
  )
  private val map = Gen.mapOf(Gen.zip(text, Gen.frequency(4 -> text, 1 -> Gen.const(null: String))))
  private val tags = Gen.mapOf(Gen.zip(text, text))
  private val long = Gen.chooseNum(0L, Long.MaxValue)
  private val bool = Gen.oneOf(true, false)

  private val dv = for {
    kind <- Gen.oneOf("u", "p", "i")
    data <- text
    offset <- Gen.option(Gen.posNum[Int])
    size <- Gen.posNum[Int]
    rows <- long
  } yield DeletionVectorDescriptor(kind, data, offset, size, rows)

  private val add = for {
    path <- text
    partition <- map
    size <- long
    time <- long
    change <- bool
    stats <- Gen.option(text)
    t <- tags
    vector <- Gen.option(dv)
    row <- Gen.option(long)
    version <- Gen.option(long)
    clustering <- Gen.option(text)
  } yield AddFile(path, partition, size, time, change, stats, t, vector, row, version, clustering)

  private val metadata = for {
    id <- text
    name <- Gen.option(text)
    description <- Gen.option(text)
    options <- tags
    schema <- text
    columns <- Gen.listOf(text)
    created <- Gen.option(long)
    configuration <- tags
  } yield Metadata(
    id,
    name,
    description,
    Format("parquet", options),
    schema,
    columns.toVector,
    created,
    configuration
  )

  private val protocol = for {
    reader <- Gen.posNum[Int]
    writer <- Gen.posNum[Int]
    readers <- Gen.option(Gen.listOf(text).map(_.toSet))
    writers <- Gen.option(Gen.listOf(text).map(_.toSet))
  } yield Protocol(reader, writer, readers, writers)

  private val action: Gen[Action] = Gen.oneOf(
    add,
    for (a <- add; ms <- long; change <- bool) yield a.remove(ms, change),
    for (a <- add) yield RemoveFile(a.path, None, dataChange = true),
    for (a <- add) yield AddCdcFile(a.path, a.partitionValues, a.sizeBytes, a.tags),
    metadata,
    protocol,
    for (app <- text; v <- long; ms <- Gen.option(long)) yield SetTransaction(app, v, ms),
    for (d <- text; c <- text; gone <- bool) yield DomainMetadata(d, c, gone),
    for (v <- long; t <- tags) yield CheckpointMetadata(v, t),
    for (p <- text; size <- long; ms <- long; t <- tags) yield Sidecar(p, size, ms, t)
  )

  property("an action is written as one line, and round-trips") {
    forAll(action) { a =>
      val line = ActionJson.write(a)
      assert(!line.contains('\n'))
      assertEquals(ActionJson.parse(line), Some(a))
    }
  }

  test("the protocol's example of an add is read field by field") {
    val line = """{"add":{"path":"date=2017-12-10/part-000...c000.gz.parquet",
      |"partitionValues":{"date":"2017-12-10"},"size":841454,"modificationTime":1512909768000,
      |"dataChange":true,"baseRowId":4071,"defaultRowCommitVersion":41,
      |"stats":"{\"numRecords\":1}"}}""".stripMargin
    val expected = AddFile(
      "date=2017-12-10/part-000...c000.gz.parquet",
      Map("date" -> "2017-12-10"),
      841454,
      1512909768000L,
      dataChange = true,
      stats = Some("""{"numRecords":1}"""),
      baseRowId = Some(4071),
      defaultRowCommitVersion = Some(41)
    )
    assertEquals(ActionJson.parse(line), Some(expected))
  }

  // Protocol: protocol-evolution-3
  test("unknown actions and fields are ignored, and null fields are treated as absent") {
    assertEquals(ActionJson.parse("""{"newThing":{"a":[1,{"b":2}]}}"""), None)
    assertEquals(
      ActionJson.parse(
        """{"txn":{"appId":"a","version":1,"more":[{"x":{}}],"lastUpdated":null},"add":null}"""
      ),
      Some(SetTransaction("a", 1))
    )
  }

  test("commitInfo is retained completely, with accessors for common fields") {
    val line =
      """{"commitInfo":{"timestamp":5,"inCommitTimestamp":6,"operation":"WRITE","isBlindAppend":true,"x":{"y":[1]}}}"""
    val info = ActionJson.parse(line).get.asInstanceOf[CommitInfo]
    assertEquals(ActionJson.write(info), line)
    assertEquals(
      (info.timestampMs, info.inCommitTimestampMs, info.operation, info.isBlindAppend),
      (Some(5L), Some(6L), Some("WRITE"), Some(true))
    )
    assertEquals(info.engineInfo, None)
  }

  test("commitInfo may be any JSON, but only the fields of an object are used") {
    Seq(""""by hand"""", "17", "true", """["a",{"operation":"WRITE"}]""").foreach { value =>
      val parsed = ActionJson.parse(s"""{"commitInfo":$value,"unknown":1}""").get
      val info = parsed.asInstanceOf[CommitInfo]
      assertEquals((info.operation, info.timestampMs, info.engineInfo), (None, None, None))
    }
  }

  Seq(
    """{"add":{"path":"x"}}""" -> "add lacks the required field size",
    """{"add":{"size":1}}""" -> "add lacks the required field path",
    """{"add":{"path":"x","size":1.5}}""" -> "size must be a whole number",
    """{"add":{"path":"x","size":1,"dataChange":"yes"}}""" -> "dataChange must be true or false",
    """{"add":"x"}""" -> "add must be a JSON object",
    """{"protocol":{"minReaderVersion":99999999999,"minWriterVersion":1}}""" -> "out of range",
    """{"add":{"path":"x","size":1""" -> "Unexpected end-of-input",
    "[]" -> "an action must be a JSON object",
    "" -> "an action must be a JSON object"
  ).foreach { case (line, reason) =>
    test(s"$line is refused: $reason") {
      val e = intercept[DeltaicThrowable](ActionJson.parse(line))
      assertEquals(e.condition, "DELTAIC_ACTION_MALFORMED")
      assert(e.getMessage.contains(reason), e.getMessage)
    }
  }
}
