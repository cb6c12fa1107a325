package io.deltaic.replay

import java.util.UUID

import org.apache.parquet.example.data.Group

import io.deltaic.TableBuilder
import io.deltaic.protocol.AddFile

/** The memory use of a snapshot's files. */
class SnapshotMemorySuite extends munit.FunSuite {
  import CheckpointRows._

  private val id = new UUID(1, 2)

  private def file(i: Int): AddFile = AddFile(
    path = f"date=2024-01-${i % 28 + 1}%02d/part-$i%05d-$id-c000.snappy.parquet",
    partitionValues = Map("date" -> f"2024-01-${i % 28 + 1}%02d"),
    sizeBytes = 1000L + i,
    modificationTimeMs = i.toLong,
    dataChange = true,
    stats = Some(
      s"""{"numRecords":$i,"minValues":{"id":$i,"name":"from $i"},""" +
        s""""maxValues":{"id":$i,"name":"to $i"},"nullCount":{"id":0,"name":0}}"""
    ),
    tags = Map("INSERTION_TIME" -> "1700000000000000")
  )

  private def map(name: String): String =
    s"""
    optional group $name (MAP) {
      repeated group key_value { required binary key (UTF8); optional binary value (UTF8); } }"""

  private val columns =
    s"""
    optional group add {
      optional binary path (UTF8); optional int64 size; optional int64 modificationTime;
      optional binary stats (UTF8); ${map("partitionValues")} ${map("tags")} }"""

  private def fileRow(add: AddFile)(row: Group): Unit = {
    val group = row.addGroup("add").append("path", add.path).append("size", add.sizeBytes)
      .append("modificationTime", add.modificationTimeMs).append("stats", add.stats.get)
    Seq("partitionValues" -> add.partitionValues, "tags" -> add.tags).foreach { case (name, map) =>
      val entries = group.addGroup(name)
      map.foreach { case (k, v) =>
        entries.addGroup("key_value").append("key", k).append("value", v)
      }
    }
  }

  private def checkpointed(count: Int): TableBuilder = {
    val table = TableBuilder.created()
    val rows = Iterator.range(0, count).map(i => fileRow(file(i)) _)
    write(table, f"${0}%020d.checkpoint.parquet", schema(definitionColumns, columns))(
      Seq(protocolRow _, metadataRow _) ++ rows: _*
    )
    table
  }

  private def committed(count: Int): TableBuilder =
    TableBuilder.created((0 until count).map(file): _*)

  private val forms: Seq[(String, Int => TableBuilder)] =
    Seq("a checkpoint" -> checkpointed, "a commit" -> committed)

  forms.foreach { case (form, make) =>
    test(s"equal partition values, column names and tags of the files of $form are one object") {
      val files = make(56).open().latest().files
      val days = (0 until files.size).groupBy(files.partitionValue(_, "date")).values
      assertEquals(days.map(_.size).toSeq, Seq.fill(28)(2))
      days.foreach { day =>
        assert(files.partitionValue(day.head, "date") eq files.partitionValue(day.last, "date"))
      }
      val (first, last) = (files.add(0), files.add(files.size - 1))
      assert(first.partitionValues.keys.head eq last.partitionValues.keys.head)
      assertEquals(first.tags, file(0).tags)
      assert(first.tags eq last.tags)
    }

    test(s"a file of $form takes less than 1 KiB of heap, about as retainedBytes reports") {
      val count = 50000
      val table = make(count)
      make(10).open().latest()
      val before = usedBytes()
      val snapshot = table.open().latest()
      assert(snapshot.files.indexOf(file(7).path, None) >= 0)
      val bytes = usedBytes() - before
      assertEquals(snapshot.files.size, count)
      assert(bytes < count * 1024L, s"${bytes / count} bytes for each file")
      val reported = snapshot.retainedBytes
      assert(reported > bytes / 2 && reported < bytes * 2, s"$reported bytes reported, $bytes used")
    }
  }

  /** The minimum of several measurements: other garbage may be collected later. */
  private def usedBytes(): Long = (1 to 3).map { _ =>
    System.gc()
    Runtime.getRuntime.totalMemory - Runtime.getRuntime.freeMemory
  }.min
}
