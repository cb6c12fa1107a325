package io.deltaic.replay

import org.apache.parquet.example.data.Group
import org.apache.parquet.example.data.simple.NanoTime
import org.apache.parquet.io.api.Binary

import io.deltaic.TableBuilder
import io.deltaic.TableBuilder.add
import io.deltaic.protocol._

/** Checkpoints with content that the golden tables lack. */
class CheckpointReaderSuite extends munit.FunSuite {
  import CheckpointRows._

  private def checkpointName(version: Long): String = f"$version%020d.checkpoint.parquet"

  private def paths(table: TableBuilder): List[String] = {
    val files = table.open().latest().files
    (0 until files.size).map(files.path).toList.sorted
  }

  // Protocol: protocol-evolution-3, protocol-evolution-4, requirements-for-writers-checkpoints-2
  test("missing columns are null, unknown ones are ignored, and lists may have both layouts") {
    val table = TableBuilder()
    write(
      table,
      checkpointName(3),
      schema(definitionColumns, plainAdd, "optional int32 whatever;")
    )(
      protocolRow,
      metadataRow,
      addRow("a"),
      addRow("b%20c"),
      _.append("whatever", 1)
    )
    val snapshot = table.commit(4, add("d")).open().latest()
    assertEquals(
      snapshot.protocol,
      Protocol(3, 7, Some(Set("deletionVectors")), Some(Set("deletionVectors", "appendOnly")))
    )
    assertEquals(
      snapshot.metadata,
      Metadata("from-checkpoint", schemaString = "{}", configuration = Map("a" -> "b"))
    )
    assertEquals(paths(table), List("a", "b%20c", "d"))
    assertEquals(
      snapshot.files.add(snapshot.files.indexOf("a", None)),
      AddFile("a", Map.empty, 7, 0, dataChange = false)
    )
    assertEquals(table.open().earliestVersion, 3L)
    val gone = intercept[DeltaicThrowable](table.open().at(2))
    assertEquals(gone.condition, "DELTAIC_VERSION_NOT_FOUND")
    assertEquals(gone.parameters("earliest"), "3")
  }

  private def withFeature(feature: String)(row: Group): Unit = {
    val p = row.addGroup("protocol").append("minReaderVersion", 3).append("minWriterVersion", 7)
    p.addGroup("readerFeatures").addGroup("list").append("element", feature)
    p.addGroup("writerFeatures").append("array", feature): Unit
  }

  // Protocol: table-features-4
  test("the reader requirements of a checkpoint's protocol apply until a commit removes them") {
    val table = TableBuilder()
    write(table, checkpointName(3), schema(definitionColumns, plainAdd))(
      withFeature("fromTheFuture"),
      metadataRow,
      addRow("a")
    )
    def refusal: String = {
      val e = intercept[DeltaicThrowable](table.open().latest())
      assertEquals(e.condition, "DELTAIC_UNSUPPORTED_READER_FEATURE")
      e.parameters("features")
    }
    assertEquals(refusal, "fromTheFuture")
    table.commit(4, add("b"))
    assertEquals(refusal, "fromTheFuture")
    table.commit(5, Protocol(3, 7, Some(Set("unknown")), Some(Set("unknown"))))
    assertEquals(refusal, "unknown")
    table.commit(6, Protocol(1, 2), add("c"))
    assertEquals(paths(table), List("a", "b", "c"))
    assertEquals(table.open().at(6).protocol, Protocol(1, 2))
  }

  // Protocol: file-types-checkpoints-3
  test("a version without a complete log is not found, and the error has the range") {
    val table = TableBuilder()
    (8L to 12L).foreach(v => table.commit(v, add(s"file-$v")))
    write(
      table,
      checkpointName(10),
      schema(definitionColumns, plainAdd)
    )(protocolRow, metadataRow, addRow("a"))
    assertEquals(paths(table), List("a", "file-11", "file-12"))
    Seq(7L, 8L, 9L, 13L).foreach { version =>
      val e = intercept[DeltaicThrowable](table.open().at(version))
      assertEquals(e.condition, "DELTAIC_VERSION_NOT_FOUND")
      assertEquals((e.parameters("earliest"), e.parameters("latest")), ("10", "12"))
    }
  }

  // Protocol: file-types-checkpoints-6
  test("a multi-part checkpoint is used only if it has all its parts") {
    val table = TableBuilder.created(add("from-commit")).commit(1)
    def part(n: Int) = f"${1}%020d.checkpoint.$n%010d.${2}%010d.parquet"
    write(
      table,
      part(1),
      schema(definitionColumns, plainAdd)
    )(protocolRow, metadataRow, addRow("x"))
    assertEquals(paths(table), List("from-commit"))
    write(table, part(2), schema(definitionColumns, plainAdd))(addRow("y"))
    assertEquals(paths(table), List("x", "y"))
    table.file("_last_checkpoint", """{"version":1,"size":4,"parts":2}""")
    assertEquals(paths(table), List("x", "y"))
  }

  test("non-file actions are found anywhere among file actions that fill many pages") {
    val txn = "optional group txn { optional binary appId (UTF8); optional int64 version; }"
    def txnRow(id: String)(row: Group): Unit = {
      row.addGroup("txn").append("appId", id).append("version", 1L)
      ()
    }
    val files = (0 until 60000).map(i => addRow(s"f$i") _)
    val (some, others) = files.splitAt(45000)
    val rows = (txnRow("first") _ +: some) ++
      (Seq(txnRow("middle") _, metadataRow _) ++ others ++ Seq(protocolRow _, txnRow("last") _))
    val table = TableBuilder()
    write(table, checkpointName(0), schema(definitionColumns, plainAdd, txn))(rows: _*)
    val snapshot = table.open().latest()
    assertEquals(snapshot.transactions.keySet, Set("first", "middle", "last"))
    assertEquals(snapshot.metadata.id, "from-checkpoint")
    assertEquals(snapshot.protocol.minReaderVersion, 3)
    assertEquals(snapshot.files.size, 60000)
  }

  // Protocol: file-types-checkpoints-1
  test("a stale hint is superseded by a newer checkpoint, a dangling one by the listing") {
    val table = TableBuilder.created(add("from-commit")).commit(1).commit(2)
    table.file("_last_checkpoint", """{"version":1,"size":4}""")
    assertEquals(paths(table), List("from-commit"))
    write(
      table,
      checkpointName(2),
      schema(definitionColumns, plainAdd)
    )(protocolRow, metadataRow, addRow("x"))
    assertEquals(paths(table), List("x"))
  }

  // Protocol: file-types-checkpoints-3
  test("a damaged checkpoint is skipped if the commits exist, and else reported") {
    val table = TableBuilder.created(add("a")).file(checkpointName(0), "PAR1 not really")
    assertEquals(paths(table), List("a"))
    table.commit(1, add("b")).delete(f"${0}%020d.json")
    val e = intercept[DeltaicThrowable](table.open().latest())
    assertEquals(e.condition, "DELTAIC_CHECKPOINT_UNREADABLE")
    assert(e.parameters("tried").startsWith(checkpointName(0)), e.getMessage)
    assert(e.getMessage.contains(s"Version 1 of table ${table.open().table}"), e.getMessage)
  }

  // Protocol: file-types-checkpoints-1
  test("the newest readable one of several checkpoints is read") {
    val table = TableBuilder.created(add("from-commit")).commit(1).commit(2).commit(3, add("c"))
    write(
      table,
      checkpointName(1),
      schema(definitionColumns, plainAdd)
    )(protocolRow, metadataRow, addRow("x"))
    table.file(checkpointName(2), "damaged").file(checkpointName(3), "damaged as well")
    table.file("_last_checkpoint", """{"version":3,"size":4}""").delete(f"${0}%020d.json")
    assertEquals(paths(table), List("c", "x"))
    table.file(checkpointName(1), "and this")
    val e = intercept[DeltaicThrowable](table.open().latest())
    assertEquals(e.condition, "DELTAIC_CHECKPOINT_UNREADABLE")
    (1 to 3).foreach(v => assert(e.parameters("tried").contains(checkpointName(v)), e.getMessage))
  }

  test("an older version never replaces one whose checkpoint is damaged") {
    val table =
      TableBuilder.created(add("a")).commit(1, add("b")).file(checkpointName(2), "damaged")
    val e = intercept[DeltaicThrowable](table.open().latest())
    assertEquals(e.condition, "DELTAIC_CHECKPOINT_UNREADABLE")
    assertEquals(e.parameters("version"), "2")
  }

  test("a checkpoint without the required fields is reported") {
    val table = TableBuilder()
    write(table, checkpointName(0), schema(definitionColumns, plainAdd))(
      protocolRow,
      metadataRow,
      row => { row.addGroup("add").append("path", "a"); () }
    )
    val e = intercept[DeltaicThrowable](table.open().latest())
    assert(e.getMessage.contains("add.size"), e.getMessage)
  }

  test("statistics that exist only as a struct are returned as JSON") {
    val leaf =
      """
      optional int64 l; optional double d; optional binary s (UTF8); optional int32 day (DATE);
      optional int64 at (TIMESTAMP(MICROS,true)); optional int64 ntz (TIMESTAMP(MICROS,false));
      optional int96 old; optional int32 dec (DECIMAL(5,2)); optional boolean b; optional binary raw;
      optional group in { optional int32 x; }"""
    val statsAdd = s"""optional group add { optional binary path (UTF8); optional int64 size;
      optional binary stats (UTF8);
      optional group stats_parsed { optional int64 numRecords; optional boolean tightBounds;
        optional group minValues { $leaf }
        optional group nullCounts { optional int64 l; optional int64 nullCounts; } } }"""
    val table = TableBuilder()
    write(table, checkpointName(0), schema(definitionColumns, statsAdd))(
      protocolRow,
      metadataRow,
      { row =>
        val file = row.addGroup("add").append("path", "a").append("size", 7L)
        val stats =
          file.addGroup("stats_parsed").append("numRecords", 4L).append("tightBounds", true)
        val min = stats.addGroup("minValues").append("l", -1L).append("d", 0.5).append("s", "q\"")
        min.append("day", -1).append("at", 1500000L).append("ntz", -1L).append("dec", -125)
        min.append("old", new NanoTime(2440589, 1000000L)).append("b", false)
        min.append("raw", Binary.fromString("z")).addGroup("in").append("x", 3)
        stats.addGroup("nullCounts").append("l", 2L).append("nullCounts", 3L)
        ()
      },
      addRow("b")
    )
    val files = table.open().latest().files
    assertEquals(
      files.stats(files.indexOf("a", None)),
      """{"numRecords":4,"tightBounds":true,"minValues":{"l":-1,"d":0.5,"s":"q\"",""" +
        """"day":"1969-12-31","at":"1970-01-01T00:00:01.500Z","ntz":"1969-12-31T23:59:59.999999",""" +
        """"old":"1970-01-02T00:00:00.001Z","dec":-1.25,"b":false,"in":{"x":3}},""" +
        // The checkpoint schema of the protocol spells the field in the plural (Protocol § Checkpoint Schema).
        """"nullCount":{"l":2,"nullCounts":3}}"""
    )
    assertEquals(files.stats(files.indexOf("b", None)), null)
  }
}
