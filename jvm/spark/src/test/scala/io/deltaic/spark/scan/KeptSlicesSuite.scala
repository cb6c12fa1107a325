package io.deltaic.spark.scan

import java.nio.file.Files

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{EqualTo, Literal}

import io.deltaic.TableBuilder
import io.deltaic.protocol.AddFile
import io.deltaic.replay.{CheckpointSlice, DeltaLog, FileTable}
import io.deltaic.spark.skipping.{FileSelection, SnapshotStatistics}

class KeptSlicesSuite extends munit.FunSuite {
  import DistributedFilesSuite._

  private val minute = 60L * 1000 * 1000 * 1000

  private def add(i: Int): AddFile = AddFile(
    s"file-$i",
    Map("x_p" -> (i % 3).toString, "x_q" -> null),
    10,
    0,
    dataChange = true,
    stats = Some(s"""{"numRecords":$i}""")
  )

  /** A checkpoint of several slices. */
  private val (table, slices) = {
    val table = TableBuilder().commit(0, protocol, metadata)
    writeFile(table, classicName, (0 until 900).map(add), header = true, rowGroupBytes = 4096)
    val snapshot = new DeltaLog(table.path, table.conf, 0).latest()
    (table, snapshot.stored.get.slices)
  }

  private def read(kept: KeptSlices, slice: CheckpointSlice): Seq[FileTable] = {
    val found = mutable.Buffer.empty[FileTable]
    kept.files(slice, table.conf)(found += _)
    found.toSeq
  }

  private def paths(files: Seq[FileTable]): Seq[String] =
    files.flatMap(f => (0 until f.size).map(f.path))

  private def bytesOf(slice: CheckpointSlice): Long = {
    val all = new KeptSlices(Long.MaxValue, minute)
    read(all, slice)
    all.retainedBytes
  }

  test("slices are read once, and tell the files they hold") {
    assert(slices.size > 2, slices.size.toString)
    val kept = new KeptSlices(Long.MaxValue, minute)
    val first = slices.map(read(kept, _))
    assertEquals(paths(first.flatten).sorted, (0 until 900).map(i => s"file-$i").sorted)
    slices.zip(first).foreach { case (slice, files) =>
      read(kept, slice).zip(files).foreach { case (again, before) => assert(again eq before) }
    }
  }

  test("what a query decodes of a slice is counted, and there for the next query") {
    val kept = new KeptSlices(Long.MaxValue, minute)
    val slice = slices.head
    val schema = TableSchema.of(table.path.toString, protocol, metadata).skipping
    val filter = EqualTo(io.deltaic.spark.skipping.StatsTable.attributes.head, Literal("0"))
    read(kept, slice)
    val undecoded = kept.retainedBytes
    kept.files(slice, table.conf) { files =>
      FileSelection.select(
        SnapshotStatistics.of(files, schema, java.time.ZoneOffset.UTC),
        Seq(filter)
      )
      ()
    }
    assert(kept.retainedBytes > undecoded, s"${kept.retainedBytes}, before $undecoded")
  }

  test("a slice for which there is no room is read each time, and moves no other") {
    val bytes = slices.map(bytesOf)
    val kept = new KeptSlices(bytes(0) + bytes(1) / 2, minute)
    val (first, second) = (read(kept, slices(0)), read(kept, slices(1)))
    assertEquals(kept.retainedBytes, bytes(0))
    assert(read(kept, slices(0)).head eq first.head)
    val again = read(kept, slices(1))
    assert(!(again.head eq second.head))
    assertEquals(paths(again), paths(second))
    assertEquals(kept.retainedBytes, bytes(0))
  }

  test("a slice that nobody asks for makes room for another") {
    val kept = new KeptSlices(slices.map(bytesOf).max, idleNanos = 0)
    read(kept, slices(0))
    val second = read(kept, slices(1))
    assertEquals(kept.retainedBytes, bytesOf(slices(1)))
    assertEquals(paths(second), paths(read(kept, slices(1))))
  }

  test("a slice of a file that was written anew is another") {
    val kept = new KeptSlices(Long.MaxValue, minute)
    val before = read(kept, slices.head)
    val other = slices.head.copy(modificationTimeMs = slices.head.modificationTimeMs + 1)
    assert(!(read(kept, other).head eq before.head))
  }

  test("nothing is kept of a slice whose visitor fails") {
    val kept = new KeptSlices(Long.MaxValue, minute)
    intercept[IllegalStateException] {
      kept.files(slices.head, table.conf)(_ => throw new IllegalStateException("no"))
    }
    assertEquals(kept.retainedBytes, 0L)
  }

  override def afterAll(): Unit =
    Files.walk(table.directory).sorted(java.util.Comparator.reverseOrder()).forEach(Files.delete(_))
}
